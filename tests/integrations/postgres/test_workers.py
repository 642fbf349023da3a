"""Several workers and one database: the file for Docker Compose, and many processes that call at once."""

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from every_command import COMMANDS

from openclaw_memory import MemoryConfig

ROOT = Path(__file__).parents[3]


def test_the_compose_file_has_pinned_images_and_commands_and_health_checks_that_exist(tmp_path):
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load(files("openclaw_memory_postgres").joinpath("compose.yaml").read_text())
    assert set(compose["services"]) == {"postgres", "worker-1", "worker-2"}
    for service in compose["services"].values():
        image = service.get("image") or re.search("^FROM (.+)$", service["build"]["dockerfile_inline"], re.MULTILINE)[1]
        assert re.search(r":\d+\.\d+\.\d+-", image), f"{image} is not pinned"
        kind, *check = service["healthcheck"]["test"]
        assert kind == "CMD"
        for program, *words in [check, *([service["command"]] if "command" in service else [])]:
            if program == "openclaw-memory":
                COMMANDS[words[0]].make_context(words[0], words[1:], resilient_parsing=False)
            else:
                assert (program, *words) == ("pg_isready", "--username", "postgres")
    (tmp_path / "memory.toml").write_text(compose["configs"]["memory"]["content"])
    assert MemoryConfig.from_toml(tmp_path / "memory.toml").store.url.endswith("files=column")


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_processes_that_write_the_same_agents_at_once_lose_and_mix_nothing(database):
    command = [sys.executable, str(ROOT / "benchmarks" / "many_workers.py"), "--quick", "--url", database]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    rows = json.loads(done.stdout)["rows"]
    assert (rows["wrong"], rows["refusals"]) == ([], [])
    assert rows["append"]["calls"] > 4
    assert rows["connections at most"] <= 4 * 16
