"""The SDKs of OpenAI, Gemini and Voyage, pointed at the embedding server, for tests of the server itself."""

import asyncio
from contextlib import asynccontextmanager

import pytest

SERVICES = ("openai", "gemini", "voyage")
WAIT = 20.0  # seconds; only a broken test waits so long


@asynccontextmanager
async def openai_client(server, key="any", service="openai"):
    openai = pytest.importorskip("openai")
    base_url = server.base_url(service)
    async with openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=WAIT) as client:
        yield client


@asynccontextmanager
async def gemini_client(server, key="any"):
    """Over httpx: over aiohttp the SDK asks a second time by itself, after up to ten seconds."""
    genai, httpx = pytest.importorskip("google.genai"), pytest.importorskip("httpx")
    async with httpx.AsyncClient(timeout=WAIT) as http:
        options = genai.types.HttpOptions(base_url=server.base_url("gemini"), httpx_async_client=http)
        client = genai.Client(api_key=key, http_options=options)
        yield client
        client.close()


def genai_types():
    return pytest.importorskip("google.genai").types


async def ask_openai(server, texts, key="any", **options):
    async with openai_client(server, key) as client:
        answer = await client.embeddings.create(model="text-embedding-3-small", input=texts, **options)
    return [each.embedding for each in answer.data]


async def ask_gemini(server, texts, key="any", **options):
    config = genai_types().EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT", **options)
    async with gemini_client(server, key) as client:
        answer = await client.aio.models.embed_content(model="gemini-embedding-001", contents=texts, config=config)
    return [each.values for each in answer.embeddings]


async def ask_voyage(server, texts, key="any", **options):
    voyageai = pytest.importorskip("voyageai")
    client = voyageai.AsyncClient(api_key=key, base_url=server.base_url("voyage"), max_retries=1, timeout=WAIT)
    answer = await client.embed(texts, model="voyage-4-large", input_type="document", **options)
    return answer.embeddings


ASK = {"openai": ask_openai, "gemini": ask_gemini, "voyage": ask_voyage}


def ask(server, service, texts, key="any", **options):
    return asyncio.run(ASK[service](server, texts, key, **options))


def failure(server, service, texts=("one", "two")):
    """The status and the words that the SDK's error holds."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of three SDKs
        ask(server, service, list(texts))
    error = caught.value
    found = (getattr(error, name, None) for name in ("status_code", "http_status", "code"))
    status = next(value for value in found if isinstance(value, int))
    return status, str(error)
