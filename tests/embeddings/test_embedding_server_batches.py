"""The batch APIs of the embedding server, used by the services' own SDKs; Voyage's by OpenAI's, as Voyage advises."""

import asyncio
import io
import json

import embedding_faults as faults
import pytest
from embedding_sdks import ask, gemini_client, genai_types, openai_client

pytestmark = pytest.mark.filterwarnings("ignore:batches.create_embeddings")  # google-genai calls it experimental
ONE, TWO = "the red boat", "a green hill"


def batch_lines(service, texts):
    """The input file of a batch: OpenAI's lines say everything, Voyage's only the texts."""
    about = {"method": "POST", "url": "/v1/embeddings"} if service == "openai" else {}
    more = {"model": "text-embedding-3-small"} if service == "openai" else {}
    lines = [{"custom_id": f"k{place}", **about, "body": {**more, "input": [text]}} for place, text in enumerate(texts)]
    return "\n".join(map(json.dumps, lines)).encode()


async def file_batch(client, service, texts, polls=3):
    """Submit texts, poll, and download: the last state of the job, and its answers by their keys."""
    file = await client.files.create(file=("batch.jsonl", batch_lines(service, texts)), purpose="batch")
    more = {} if service == "openai" else {"request_params": {"model": "voyage-4-large", "input_type": "document"}}
    batch = await client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/embeddings",
        completion_window="24h" if service == "openai" else "12h",
        extra_body=more,
    )
    for _ in range(polls):
        batch = await client.batches.retrieve(batch.id)
    output = []
    for name in (batch.output_file_id, batch.error_file_id):
        if name is not None:
            output += (await client.files.content(name)).text.splitlines()
    return batch, {line["custom_id"]: line["response"] for line in map(json.loads, output)}


def run_file_batch(server, service, texts, polls=3):
    async def story():
        async with openai_client(server, service=service) as client:
            return await file_batch(client, service, texts, polls)

    return asyncio.run(story())


@pytest.mark.parametrize("service", ["openai", "voyage"])
def test_a_batch_of_a_file_answers_every_line(server, service):
    batch, answers = run_file_batch(server, service, [ONE, TWO, "three"])
    assert batch.status == "completed"
    assert batch.request_counts.completed == 3
    assert list(answers) == ["k2", "k1", "k0"], "no order is promised, and this is not that of the lines"
    (expected,) = ask(server, "openai", [ONE])
    assert answers["k0"]["body"]["data"][0]["embedding"] == pytest.approx(expected)
    assert server.answered[TWO] == 1
    assert [asked.at for asked in server.requests[:4]] == ["upload", "submit", "poll", "poll"]


@pytest.mark.parametrize("service", ["openai", "voyage"])
def test_a_batch_runs_for_as_many_polls_as_it_is_told(server, service):
    server.batch.polls = 3
    assert run_file_batch(server, service, [ONE], polls=3)[0].status == "in_progress"
    assert run_file_batch(server, service, [ONE], polls=4)[0].status == "completed"


@pytest.mark.parametrize("service", ["openai", "voyage"])
def test_lines_of_a_batch_may_fail(server, service):
    server.batch.failing, server.batch.refused = 1, {"three"}
    batch, answers = run_file_batch(server, service, [ONE, TWO, "three"])
    assert {key: each["status_code"] for key, each in answers.items()} == {"k0": 400, "k1": 200, "k2": 400}
    assert batch.status == "completed"
    assert batch.request_counts.failed == 2


@pytest.mark.parametrize("service", ["openai", "voyage"])
def test_a_batch_may_fail_whole_and_expire_half_done(server, service):
    server.batch.outcome = "failed"
    batch, answers = run_file_batch(server, service, [ONE, TWO])
    assert (batch.status, answers) == ("failed", {})
    server.batch.outcome = "expired"
    batch, answers = run_file_batch(server, service, [ONE, TWO])
    assert batch.status == "expired"
    assert answers["k0"]["status_code"] == 200


def test_a_batch_can_be_cancelled_and_forgotten(server):
    async def story():
        openai = pytest.importorskip("openai")
        async with openai_client(server) as client:
            file = await client.files.create(file=("b.jsonl", batch_lines("openai", [ONE])), purpose="batch")
            about = {"input_file_id": file.id, "endpoint": "/v1/embeddings", "completion_window": "24h"}
            batch = await client.batches.create(**about)
            cancelled = await client.batches.cancel(batch.id)
            server.jobs.jobs.clear()
            with pytest.raises(openai.NotFoundError):
                await client.batches.retrieve(batch.id)
            assert (await client.files.delete(file.id)).deleted
            return cancelled.status

    assert asyncio.run(story()) == "cancelled"


def test_the_parts_of_a_batch_can_lie(server):
    openai = pytest.importorskip("openai")
    server.script(faults.status(500), at="poll")
    with pytest.raises(openai.InternalServerError):
        run_file_batch(server, "openai", [ONE])
    server.script(faults.status(429), at="submit")
    with pytest.raises(openai.RateLimitError):
        run_file_batch(server, "openai", [ONE])


async def gemini_batch(client, source, polls=3):
    job = await client.aio.batches.create_embeddings(model="gemini-embedding-001", src=source)
    states = [job.state.name]
    for _ in range(polls):
        job = await client.aio.batches.get(name=job.name)
        states.append(job.state.name)
    return job, states


def inline(texts):
    types = genai_types()
    config = types.EmbedContentConfig(task_type="RETRIEVAL_DOCUMENT", output_dimensionality=16)
    return types.EmbeddingsBatchJobSource(inlined_requests=types.EmbedContentBatch(contents=texts, config=config))


def test_a_gemini_batch_answers_what_stands_in_it(server):
    async def story():
        async with gemini_client(server) as client:
            return await gemini_batch(client, inline([ONE, TWO]))

    job, states = asyncio.run(story())
    assert states == ["JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED", "JOB_STATE_SUCCEEDED"]
    found = [each.response.embedding.values for each in job.dest.inlined_embed_content_responses]
    assert found == ask(server, "gemini", [ONE, TWO], output_dimensionality=16)
    assert server.answered == {ONE: 2, TWO: 2}


def test_requests_of_a_gemini_batch_may_fail_and_the_whole_may(server):
    async def story(outcome, failing):
        server.batch.outcome, server.batch.failing = outcome, failing
        async with gemini_client(server) as client:
            return await gemini_batch(client, inline([ONE, TWO]))

    job, _ = asyncio.run(story("completed", 1))
    one, two = job.dest.inlined_embed_content_responses
    assert (one.error.code, one.response) == (3, None)
    assert two.response.embedding.values
    assert asyncio.run(story("failed", 0))[1][-1] == "JOB_STATE_FAILED"
    assert asyncio.run(story("expired", 0))[1][-1] == "JOB_STATE_EXPIRED"


def test_a_gemini_batch_may_come_as_a_file_and_be_cancelled(server):
    lines = [
        {"key": key, "request": {"content": {"parts": [{"text": text}]}}} for key, text in (("a", ONE), ("b", TWO))
    ]
    content = io.BytesIO("\n".join(map(json.dumps, lines)).encode())

    async def story():
        types = genai_types()
        async with gemini_client(server) as client:
            file = await client.aio.files.upload(file=content, config={"mime_type": "application/jsonl"})
            job, _ = await gemini_batch(client, types.EmbeddingsBatchJobSource(file_name=file.name))
            output = await client.aio.files.download(file=job.dest.file_name)
            second = await client.aio.batches.create_embeddings(model="m", src=inline([ONE]))
            await client.aio.batches.cancel(name=second.name)
            return output, (await client.aio.batches.get(name=second.name)).state.name

    output, state = asyncio.run(story())
    answers = {line["key"]: line["response"]["embedding"]["values"] for line in map(json.loads, output.splitlines())}
    assert [answers["a"], answers["b"]] == ask(server, "gemini", [ONE, TWO])
    assert state == "JOB_STATE_CANCELLED"
