"""List the formats of the tokens of providers.

Each format has a literal that every token of it holds, which is looked for first, and a pattern for a text without
white space. All patterns are linear: a part without a bound either ends the match, or begins after a
character that is none of a token.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """One format of tokens."""

    literal: str
    pattern: str


# The beginning of a word of the Latin alphabet, also after `_`, a CJK character, an invisible one.
_START = r"(?<![A-Za-z0-9])"
# Sixteen letters and digits in a row, of which one is a digit: words between hyphens are shorter.
_DENSE = r"(?=(?:[a-z]{2,8}[0-9]{0,2}-){0,3}[A-Za-z0-9_]{16})(?=[A-Za-z0-9_-]{0,48}\d)"
# A capital within a word, unlike slugs.
_CAPITAL = r"(?=[A-Za-z0-9_-]{0,40}?[a-z0-9][A-Z])"
# Letters between digits, unlike words, dates and names with numbers.
_RANDOM = r"(?=[A-Za-z0-9_-]{0,48}?\d[A-Za-z]{1,16}\d)"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"


# Typed from the documentation of the providers, whose keys agents and their people handle.
KNOWN: tuple[Format, ...] = (
    Format("k_", r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}|sk_[a-f0-9]{48}(?![A-Za-z0-9])"),  # Stripe, ElevenLabs
    Format("whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    Format("gh", r"gh[oprsu]_[A-Za-z0-9]{20,}"),  # GitHub
    Format("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    Format("hf_", r"hf_[A-Za-z0-9]{20,}"),  # Hugging Face
    Format("gsk_", r"gsk_[A-Za-z0-9]{20,}"),  # Groq
    Format("r8_", r"r8_[A-Za-z0-9]{20,}"),  # Replicate
    Format("lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9_]{20,}"),  # LangSmith
    Format("npm_", r"npm_[A-Za-z0-9]{20,}"),
    Format("rubygems_", r"rubygems_[a-f0-9]{20,}"),
    Format("dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    Format("_v1_", r"do[opr]_v1_[a-f0-9]{20,}"),  # DigitalOcean
    Format("shp", r"shp(?:at|ca|pa|ss)_[A-Za-z0-9]{20,}"),  # Shopify
    Format("lin_api_", r"lin_api_[A-Za-z0-9]{20,}"),  # Linear
    Format("ntn_", r"ntn_[A-Za-z0-9]{20,}"),  # Notion
    Format("figd_", r"figd_[A-Za-z0-9_-]{20,}"),  # Figma
    Format("sbp_", r"sbp_[a-f0-9]{20,}"),  # Supabase
    Format("sb_secret_", r"sb_secret_[A-Za-z0-9_-]{16,}"),
    Format("glsa_", r"glsa_[A-Za-z0-9_]{20,}"),  # Grafana
    # OpenAI, Anthropic, DeepSeek, OpenRouter, and Voyage; words and slugs end with their beginnings, such as task-
    Format("sk-", rf"(?:(?<![A-Za-z0-9-])sk-{_DENSE}|sk-(?:proj|ant|or|svcacct|admin)-{_RANDOM})[A-Za-z0-9_-]{{16,}}"),
    Format("pa-", rf"pa-(?:(?<![A-Za-z0-9-]pa-)|{_DENSE}){_CAPITAL}{_RANDOM}[A-Za-z0-9_-]{{30,}}"),
    Format("al-", rf"al-(?:(?<![A-Za-z0-9-]al-)|{_DENSE}){_CAPITAL}{_RANDOM}[A-Za-z0-9_-]{{30,}}"),  # of Atlas
    Format("glpat-", r"glpat-[A-Za-z0-9_.-]{18,}"),  # GitLab
    Format("xox", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),  # Slack
    Format("xapp-", r"xapp-[A-Za-z0-9-]{10,}"),
    Format("GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Format("xai-", r"xai-[A-Za-z0-9]{20,}"),
    Format("pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    Format("tvly-", r"tvly-[A-Za-z0-9-]{20,}"),  # Tavily
    Format("nvapi-", r"nvapi-[A-Za-z0-9_-]{20,}"),
    Format("pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{30,}"),
    Format("PMAK-", r"PMAK-[a-f0-9-]{20,}"),  # Postman
    Format("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    Format("ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    Format("SG.", r"SG\.[A-Za-z0-9_-]{16,96}\.[A-Za-z0-9_-]{16,}"),  # SendGrid
    Format("hvs.", r"hvs\.[A-Za-z0-9_-]{20,}"),  # Vault
    # JSON Web Tokens; after a letter those that begin with their algorithm.
    Format("eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{5,}"),
    Format("eyJhbGciO", r"eyJhbGciO[A-Za-z0-9_-]{5,400}\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{5,})?"),
    Format("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    Format("AIza", r"(?<![A-Za-z0-9+/])AIza[A-Za-z0-9_-]{30,}|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_+/=-])"),  # Google
    # AWS; inside a word with a digit, unlike ASIAPACIFIC.
    Format("AKIA", r"(?:(?<![A-Za-z0-9])|(?=[A-Z]{0,19}\d))AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Format("ASIA", r"(?:(?<![A-Za-z0-9])|(?=[A-Z]{0,19}\d))ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Format("SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),  # Twilio
    Format(":AA", r"\d{6,12}:AA[A-Za-z0-9_-]{30,}"),  # Telegram's bots
    Format("dapi", r"dapi[a-f0-9]{32}(?![A-Za-z0-9])"),  # Databricks
    Format("ATATT3", r"ATATT3[A-Za-z0-9_=-]{20,}"),  # Atlassian
)

# What the lists of gitleaks (MIT) and detect-secrets 1.5 (Apache 2.0) know besides, typed anew: their rules that go by
# the form of a token alone. `PROVIDERS` stands for those that also want its provider's name.
LISTED: tuple[Format, ...] = (
    Format("gl", r"gl(?:dt|ft|rt|cbt|imt|ptt|agent|soat|oas|ffct)-[A-Za-z0-9_.-]{20,}"),  # GitLab's others
    Format("GR1348941", r"GR1348941[A-Za-z0-9_-]{20,}"),
    Format("_gitlab_session=", r"_gitlab_session=[0-9a-z]{32}"),
    Format("glc_", r"glc_[A-Za-z0-9+/]{32,}={0,2}"),  # Grafana Cloud
    Format("eyJrIjoi", r"eyJrIjoi[A-Za-z0-9]{60,}={0,2}"),  # Grafana, the older ones
    Format("api_org_", r"api_org_[A-Za-z]{34}"),  # Hugging Face, of an organisation
    Format("pscale_", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{32,}"),  # PlanetScale
    Format("sntry", r"sntry(?:s_[A-Za-z0-9+/=_]{40,}|u_[a-f0-9]{64})"),  # Sentry
    Format("rdme_", r"rdme_[a-z0-9]{70}"),  # ReadMe
    Format("shippo_", r"shippo_(?:live|test)_[A-Fa-f0-9]{40}"),
    Format("sm_", r"sm_[aps]at_[A-Za-z0-9]{16}"),  # SettleMint
    Format("sgp_", r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}"),  # Sourcegraph
    Format("pnu_", r"pnu_[A-Za-z0-9]{36}"),  # Prefect
    Format("tfp_", r"tfp_[A-Za-z0-9_.=-]{40,}"),  # Typeform
    Format("duffel_", r"duffel_(?:live|test)_[A-Za-z0-9_=-]{40,}"),
    Format("fo1_", r"fo1_[A-Za-z0-9_-]{43}"),  # Fly.io
    Format("fm", r"fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3}"),
    Format("CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
    Format("FLWSECK", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),  # Flutterwave
    Format("ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{200,}={0,3}"),  # 1Password
    Format("_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),  # MaxMind
    Format("test_", rf"{_START}test_[a-f0-9]{{35}}(?![A-Za-z0-9])"),  # Lob
    # Lob, GoCardless
    Format("live_", rf"{_START}live_(?:[a-f0-9]{{35}}|{_RANDOM}[A-Za-z0-9_=-]{{40}})(?![A-Za-z0-9])"),
    Format(".acc", r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\."
                   r"[A-Za-z0-9+/_=-]{30,}"),  # Authress
    # Netlify, Vercel, Jina, PostHog, Pinecone, Resend
    Format("_", rf"(?:nfp|vcp|jina|phx|pcsk_[A-Za-z0-9]{{4,8}}|re_[A-Za-z0-9]{{8}})_{_RANDOM}[A-Za-z0-9]{{24,}}"),
    Format("NR", r"NR(?:AK-[A-Z0-9]{27}|JS-[a-f0-9]{19}|II-[A-Za-z0-9-]{32})"),  # New Relic
    Format("API-", rf"{_START}API-(?=[A-Z0-9]{{0,25}}\d)[A-Z0-9]{{26}}(?![A-Za-z0-9])"),  # Octopus Deploy
    Format("pul-", r"pul-[a-f0-9]{40}"),  # Pulumi
    Format("tk-us-", r"tk-us-[A-Za-z0-9_-]{48}"),  # Scalingo
    Format("xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),  # Brevo
    Format("sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}"),  # Square
    # Adobe, Infracost, Firecrawl
    Format("-", rf"(?:p8e-[A-Za-z0-9]{{32}}|{_START}(?:ico-[A-Za-z0-9]{{32}}|fc-[a-f0-9]{{32}}))(?![A-Za-z0-9])"),
    Format("s-s4t2", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),  # 42
    Format("access-", rf"access-(?:sandbox|development|production)-{_UUID}"),  # Plaid
    # Mailgun, Tailscale
    Format("key-", r"(?:(?<![A-Za-z0-9-])(?:pub)?key-[0-9a-f]{32}|tskey-[a-z]{3,8}-[A-Za-z0-9-]{20,})(?![A-Za-z0-9])"),
    Format("-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),  # Mailchimp
    Format("fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),  # Frame.io
    Format("dnkey-", r"dnkey-[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}"),  # Defined Networking
    Format("v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),  # Cloudflare
    Format("dp.", r"dp\.(?:ct|pt|scim|audit|sa|st)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}"),  # Doppler
    Format("dt0c01.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),  # Dynatrace
    Format(".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),  # Terraform
    Format("at.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),  # Harness
    Format("sl.", rf"{_START}sl\.[A-Za-z0-9_=-]{{130,}}"),  # Dropbox
    Format("k.eyJ", r"[ps]k\.eyJ[A-Za-z0-9_-]{30,200}\.[A-Za-z0-9_-]{20,}"),  # Mapbox
    Format("hvb.", r"hvb\.[A-Za-z0-9_-]{100,}"),  # Vault, batches
    Format("t1.", rf"{_START}t1\.[A-Za-z0-9_-]{{10,300}}={{0,2}}\.[A-Za-z0-9_-]{{86}}={{0,2}}"),  # Yandex
    Format("AQVN", r"AQVN[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])"),
    Format(".", r"(?<![A-Za-z0-9])[MNO](?=[A-Za-z_-]{0,24}\d)[A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\."
                r"[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_.-])"),  # Discord's bots
    Format("/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{15,22}/[A-Za-z0-9_-]{40,}"),
    Format("/IncomingWebhook/", rf"/IncomingWebhook/[a-z0-9]{{32}}/{_UUID}"),  # Teams
    Format("EZ", r"EZ[AT]K[A-Za-z0-9]{54}"),  # EasyPost
    Format("LTAI", r"(?<![A-Za-z0-9+/])LTAI[A-Za-z0-9]{20}(?![A-Za-z0-9+/=])"),  # Alibaba
    Format("4b1d", r"(?<![A-Za-z0-9+/])4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9+/=])"),  # ClickHouse
    # Square's others, Facebook
    Format("EAA", r"(?<![A-Za-z0-9+/])EAA(?:A[A-Za-z0-9_-]{60}|[CM][A-Za-z0-9]{100,})(?![A-Za-z0-9+/=_-])"),
    Format("AKC", r"(?<![A-Za-z0-9+/])AKC[A-Za-z0-9]{69,70}(?![A-Za-z0-9+/=])"),  # Artifactory
    Format("A", r"(?<![A-Za-z0-9+/])(?:A3T[A-Z0-9]|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9+/=])"),  # AWS's others
    Format("sha256~", r"sha256~[A-Za-z0-9_-]{43}"),  # OpenShift
    Format("Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),  # Azure
    Format("AccountKey=", r"AccountKey=[A-Za-z0-9+/]{80,}={0,2}"),
    Format("HRKU-", r"HRKU-[A-Za-z0-9_-]{30,}"),  # Heroku
    Format("ZXlKaGJHY2lPaU", r"ZXlKaGJHY2lPaU[A-Za-z0-9+/_-]{40,}={0,2}"),  # a JSON Web Token in base64
)  # fmt: skip

# Whose tokens have no form of their own: a value is one where the name stands before it, with a word for a secret.
PROVIDERS = (
    "adafruit|adobe|airtable|algolia|alibaba|asana|atlassian|aws|azure|beamer|bitbucket|bittrex|cloudflare|cloudant|"
    "codecov|cohere|coinbase|confluence|confluent|contentful|datadog|discord|droneci|dropbox|etsy|facebook|fastly|"
    "finicity|finnhub|flickr|freshbooks|gitter|gocardless|heroku|hubspot|ibm|intercom|jfrog|artifactory|jira|kraken|"
    "kucoin|launchdarkly|linear|linkedin|mailchimp|mailgun|mapbox|mattermost|meraki|messagebird|netlify|newrelic|"
    "new[_ -]relic|nytimes|okta|plaid|privateai|rapidapi|sendbird|sentry|snyk|softlayer|sonar|sourcegraph|square|"
    "squarespace|sumo|telegram|travis|trello|twilio|twitch|twitter|vault|yandex|zendesk|voyage|gemini|openai|mistral|"
    "tailscale|elevenlabs|vercel|resend|posthog|firecrawl|brave|pinecone|deepgram|supabase|rails"
)
