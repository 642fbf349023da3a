"""Tokens of the formats that are masked, by the lists of `secret_samples.txt`, and what only looks like one."""

import re
from pathlib import Path

HEX = "3f786850e387550fdab836ed7e6dc881" * 2
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z" * 10
UPPER = "A1B2C3D4E5F6G7H8" * 4
LETTERS = "QwErTyUiOpAsDfGhJkLzXcVbNm" * 4
UUID = "0b6ad4f2-9f0e-4a51-bb0e-7a2f6d0f8b11"
ALPHABETS = {"HEX": HEX, "MIXED": MIXED, "UPPER": UPPER, "LETTERS": LETTERS, "UUID": UUID}


def read_samples(name: str) -> dict[str, str]:
    """The tokens of a list, by the names of their providers."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    text = re.sub(r"<([A-Z]+) ?(\d*)>", lambda part: ALPHABETS[part[1]][: int(part[2] or 99)], text)
    return dict(re.findall(rf"(?m)^{name} (.+?) = (.+)$", text))


KNOWN, LISTED, NAMED = map(read_samples, ("known", "listed", "named"))

HARMLESS = [
    "The task-force-of-2026 met; sk-learn-contrib-extensions is a package.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it", f"id {UUID} in the log",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "Bearer of bad news, the messenger arrived at 10:30.", "The secret: never give up.",
    "My password is in the blue notebook.", "The token economy of 2026 was discussed.",
    "Basic training starts in the morning; basic understanding suffices.",
    "https://example.org/path?page=2&sort=desc#L3", "ratio 16:9, call at 123456789:30",
    "SKU SK1234 and HF_HOME, npm_config and hf_hub are names", "The key: C minor; keyboard=qwerty",
    f"cache key: {HEX[:40]}, idempotency-key: {UUID}, public key: {HEX[:32]}, author: {HEX[:40]}",
    *(f"{name}: {HEX[:40]}" for name in ("exact cache key", "primary key", "render passes", "zoom monkey")),
    "ssh user@host.example and mail ana@example.org", "secretary = Ines, monkey: 7, tokens=4000",
]  # fmt: skip

# Thirty that look like tokens to a hasty eye.
LOOKALIKES = [
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==)",
    "sha512-VVm4e1zTfZfBbIvHMEMfXkUPFQ1xw0hRhVQJCk4lSWbKAXhp0P0hN3cJvRk5aYtX1F3Jd0zHzqv0Yk9l1Q2Zag==",
    "md5 d41d8cd98f00b204e9800998ecf8427e  backup-2026-11-21.tar.gz",
    "image ghcr.io/acme/api@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4Wm0zqkzV0bq3Zc1n8o2Yb7f5uQe9xT4rP6sL1kDmH ana@laptop",
    f"request {UUID}, trace 4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "/usr/lib/python3.11/site-packages/sentence_transformers/models/Transformer.py",
    "C:/Users/ana/AppData/Local/Programs/Python/Python311/python.exe",
    "https://github.com/acme/project/blob/3f786850e387550fdab836ed7e6dc881de23001b/src/main.py#L10-L20",
    "https://www.youtube.com/watch?v=dQw4w9WgXcQ&list=PLrAXtmErZgOeiKm4sgNOknGvNjby9efdf",
    "https://docs.google.com/document/d/1aB3dE6gH9jK2mN5pQ8sT1vW4xY7zaB3dE6gH9jK2mN5/edit",
    "pa-2026-11-21-minutes-of-the-school-board-of-Pennsylvania-v2.pdf",
    "final-report-2026-with-all-the-figures-of-the-Q3-review-v2.docx",
    "desk-2026-inventory-of-all-the-chairs-and-tables-of-floor-3",
    "the al-2026-11-annual-general-meeting-in-Alabama-was-moved",
    "kubectl logs api-gateway-7d4b9c6f5d-x2x7k -n production",
    "test_a_very_long_name_of_a_test_that_says_what_must_hold_in_2026",
    "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00, VAT NL123456789B01",
    "docker.io/library/postgres:16.4-alpine3.20 and nginx@1.27.2",
    "babel-plugin-transform-react-remove-prop-types@0.4.24",
    "ASIAPACIFICREGIONALOFFICE and AKIAKIAKIAKIAKIAKIAKI are words",
    "arn:aws:iam::123456789012:role/service-role/AWSLambdaBasicExecutionRole",
    "projects/my-project-123456/locations/europe-west4/keyRings/ring/cryptoKeys/main",
    "The Sentry token: see runbooks/2026-11-21-rotation-of-all-keys.md",
    "the Cloudflare key is rotated by ops-team-rotation-2026 each quarter",
    "bitcoin 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa got 50 BTC",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed is a contract's address",
    "SK0123456789 is an order, dapi-connector a package, r8_intake a channel",
    "eyJ is how base64 of JSON begins; hf_transfer, npm_lifecycle_event and gho_ are none",
    "Message-ID: <CAF8a1bC3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1@mail.example.org>",
]  # fmt: skip
