"""A LangGraph store over Markdown agrees with LangGraph's own store, whatever is put into it."""

import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_openclaw_memory.store import OpenClawStore
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from openclaw_memory import Memory

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@given(
    value=st.dictionaries(
        st.sampled_from(["text", "content", "a", "a.b", "", "*", "[0]", "{a}"]), json_values, max_size=3
    ),
    key=text,
    index=st.sampled_from(
        [None, False, ["text"], ["a", "text"], ["a[*]"], ["*"], ["{a,text}"], ["a.b"], ["$"], [], [""]]
    ),
)
@settings(max_examples=15)
def test_any_json_comes_back(value, key, index):
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        store = OpenClawStore(memory)
        store.put(("a",), key, value, index=index)
        item = store.get(("a",), key)
        assert (item.key, item.value) == (key, value)
        assert list(item.value) == list(value), "in the same order"


LABELS = ["a", "b", "A", "notes"]
namespaces = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3).map(tuple)
prefixes = st.lists(st.sampled_from(LABELS), max_size=2).map(tuple)
item_keys = st.sampled_from(["k", "K", "one two", ""])
scalars = st.sampled_from(["red", "blue", None, 1, 2.5, True])
values = st.fixed_dictionaries(
    {"n": st.integers(0, 4)},
    optional={
        "s": scalars,
        "d": st.fixed_dictionaries({"x": scalars}, optional={"y": scalars}),
        "l": st.lists(scalars, max_size=2),
    },
)
comparisons = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), st.integers(0, 4), min_size=1, max_size=2
)
filters = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": comparisons | st.integers(0, 4),
        "s": scalars | st.fixed_dictionaries({"$ne": scalars}) | st.fixed_dictionaries({"$eq": scalars}),
        "d": st.fixed_dictionaries({"x": scalars})
        | st.just({})
        | st.fixed_dictionaries({"x": st.fixed_dictionaries({"$ne": scalars})}),
        "l": st.lists(scalars, max_size=2),
    },
)
labels = st.lists(st.sampled_from([*LABELS, "*"]), min_size=1, max_size=3).map(tuple)
conditions = st.none() | st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), labels), max_size=2
).map(tuple)
limits, offsets = st.integers(0, 6), st.integers(0, 3)
puts = st.tuples(namespaces, item_keys, values).map(lambda parts: PutOp(*parts))
operations = (
    puts
    | puts
    | st.tuples(namespaces, item_keys).map(lambda parts: PutOp(*parts, None))
    | st.tuples(namespaces, item_keys).map(lambda parts: GetOp(*parts))
    | st.tuples(prefixes, filters, limits, offsets).map(lambda parts: SearchOp(*parts))
    | st.tuples(conditions, st.none() | st.integers(1, 3), limits, offsets).map(lambda parts: ListNamespacesOp(*parts))
)


class Oracle:
    """LangGraph's own store; items in the order of their creation, and no namespaces that have none."""

    def __init__(self):
        self.store, self.order = InMemoryStore(), []

    def batch(self, ops):
        results = []
        for op in ops:
            if isinstance(op, SearchOp):
                results.append(self.page(op, self.store.batch([op._replace(limit=1000, offset=0)])[0]))
            else:
                results.append(None if isinstance(op, PutOp) else self.store.batch([op])[0])
            self.forget_empty_namespaces()
        puts = [op for op in ops if isinstance(op, PutOp)]
        self.store.batch(puts)
        self.forget_empty_namespaces()
        there = {(namespace, key) for namespace, items in self.store._data.items() for key in items}
        self.order = [name for name in self.order if name in there]
        named = dict.fromkeys((op.namespace, op.key) for op in puts)
        self.order += [name for name in named if name in there and name not in self.order]
        return results

    def forget_empty_namespaces(self):
        for namespace in [namespace for namespace, items in self.store._data.items() if not items]:
            del self.store._data[namespace]

    def page(self, op, items):
        ordered = sorted(items, key=lambda item: self.order.index((item.namespace, item.key)))
        return ordered[op.offset : op.offset + op.limit]


def plain(result):
    if isinstance(result, list):
        return [plain(part) for part in result]
    return (result.namespace, result.key, result.value) if hasattr(result, "value") else result


@given(batches=st.lists(st.lists(operations, min_size=1, max_size=6), min_size=2, max_size=8))
@settings(max_examples=10)
def test_any_operations_are_answered_as_by_langgraphs_own_store(batches):
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=None) as memory:
        store = OpenClawStore(memory)
        for ops in batches:
            assert plain(store.batch(ops)) == plain(oracle.batch(ops))
