"""The store in PostgreSQL keeps the contract of every store."""

from uuid import uuid4

import pytest
from openclaw_memory_postgres import PostgresStore

from openclaw_memory.testing import contracts


@pytest.mark.parametrize("check", contracts.STORE_CHECKS, ids=lambda check: check.__name__.removeprefix("_check_"))
def test_it_keeps_the_contract(check, server):
    store = PostgresStore(server, tenant=f"contract {uuid4()}")
    check(store)
    store.close()
