-- Put the rows of each agent on one server of a Citus cluster. Run it on the coordinator, as the owner of the tables, after
-- the first use has made them, and again whenever you like: what is placed stays where it is.
--
--     psql -v role=memory -f citus.sql postgresql://owner@coordinator/agents
--
-- `role` is that of the service, `schema` another schema for the tables. Before, a superuser adds the nodes:
--
--     CREATE EXTENSION citus;
--     SELECT citus_set_coordinator_host('coordinator');
--     SELECT citus_add_node('worker-1', 5432);
--
-- All keys begin with `tenant`, and all tables are placed by it together: a statement of the library names one tenant, and
-- goes to one server as it is. A script, and no part of the library: nodes are for an operator to choose.

\set ON_ERROR_STOP on
\if :{?schema}
\else
\set schema openclaw_memory
\endif
SELECT set_config('openclaw_memory.schema', :'schema', false);
DO $$
DECLARE
    prefix text := quote_ident(current_setting('openclaw_memory.schema')) || '.';
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['generations', 'texts', 'files', 'chunks', 'postings', 'vectors', 'notes'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = (prefix || name)::regclass);
        -- Rows are copied to their servers, which row security would refuse an owner who is no superuser.
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', prefix || name);
        IF name = 'generations' THEN
            PERFORM create_distributed_table(prefix || name, 'tenant', shard_count => 64);
        ELSE
            PERFORM create_distributed_table(prefix || name, 'tenant', colocate_with => prefix || 'generations');
        END IF;
        -- The copied rows are still on the coordinator's disk, with what is forgotten later.
        PERFORM truncate_local_data_after_distributing_table((prefix || name)::regclass);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', prefix || name);
    END LOOP;
END
$$;

-- Of joins, those whose cost is the rows of the tenant: what a connection sets for itself does not reach the workers.
\if :{?role}
ALTER ROLE :"role" SET enable_nestloop = off;
ALTER ROLE :"role" SET jit = off;
\endif
