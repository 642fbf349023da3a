-- Put each agent's rows on one server of a Citus cluster. Run it as the owner of the tables, on the coordinator, after the
-- first use has made them:
--
--     psql -f benchmarks/citus.sql postgresql://owner@coordinator/agents
--
-- No run of it on Citus is recorded: the tests run it against functions that stand in for those of Citus, which shows that it
-- names each table, and that the key of each begins with the column that it is placed by.
--
-- All tables have `tenant` first in their primary key and are placed together, so that every statement of the library,
-- which names one tenant, goes to one server as it is. What Citus says of a statement: EXPLAIN names one task.

\set ON_ERROR_STOP on
CREATE EXTENSION IF NOT EXISTS citus;
SELECT create_distributed_table('openclaw_memory.generations', 'tenant', shard_count => 64);
SELECT create_distributed_table('openclaw_memory.' || name, 'tenant', colocate_with => 'openclaw_memory.generations')
FROM unnest(ARRAY['texts', 'files', 'chunks', 'postings', 'vectors', 'notes']) AS name
WHERE to_regclass('openclaw_memory.' || name) IS NOT NULL; -- `notes` is there once an address had files=column

-- Where an agent's rows are, and how many rows each server has.
SELECT table_name, count(*) AS shards, sum(shard_size) AS bytes, nodename FROM citus_shards
WHERE table_name::text LIKE 'openclaw_memory.%' GROUP BY table_name, nodename ORDER BY 1, 4;
