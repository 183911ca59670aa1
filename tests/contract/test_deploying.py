"""What the container files and the pages about them say is what there is."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from flows.cli import main as cli
from tasks.foundation import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
OURS = {name: each for name, each in SERVICES.items() if "build" in each and "entrypoint" not in each}


def test_the_image_copies_files_that_are_there_and_runs_commands_that_there_are() -> None:
    for source in re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.MULTILINE):
        assert (ROOT / source).exists(), source
    (entry,) = re.findall(r'^ENTRYPOINT \["([a-z]+)"\]$', DOCKERFILE, re.MULTILINE)
    (command,) = re.findall(r'^CMD \["([a-z]+)"\]$', DOCKERFILE, re.MULTILINE)
    assert entry in (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.scripts]")[1]
    assert command in cli.COMMANDS


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_a_command_with_options_that_it_takes(name: str) -> None:
    command, *options = OURS[name]["command"]
    taken = {
        each for parameter in cli.LazyCommand(command, cli.COMMANDS[command]).load().params for each in parameter.opts
    }
    assert {option for option in options if option.startswith("--")} <= taken


def test_every_service_waits_for_services_and_mounts_volumes_that_there_are() -> None:
    volumes = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["volumes"]
    for each in SERVICES.values():
        assert set(each.get("depends_on", {})) <= set(SERVICES)
        assert all("healthcheck" in SERVICES[other] for other in each.get("depends_on", {}))
        assert {volume.split(":")[0] for volume in each.get("volumes", [])} <= set(volumes)
        assert all(port.startswith("127.0.0.1:") for port in each.get("ports", []))


def test_the_variables_of_the_server_are_settings_of_prefect() -> None:
    from prefect import settings

    named = [name for each in SERVICES.values() for name in each.get("environment", {}) if name.startswith("PREFECT_")]
    assert named
    assert [name for name in named if not hasattr(settings, name)] == []
    assert not hasattr(settings, "PREFECT_NO_SUCH_SETTING")


def test_the_job_of_the_slurm_page_is_a_script_that_a_shell_can_read() -> None:
    page = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    assert script.startswith("#!/bin/bash\n")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
