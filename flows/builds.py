"""What can be had of a build without making rows: its report, the checks of its rows, its release."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from prefect import flow

from flows.chain.checks import ChecksFoundRows, check_build
from flows.chain.options import BuildOptions, ReleaseOptions, ReportOptions
from flows.identity import named_run
from flows.prefect_artifacts import post_checks, post_report
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.store.layout import Layout
from tasks.release.folder import write_release
from tasks.report.build import write_report

REPORT, CHECK, RELEASE = ReportOptions(), BuildOptions(), ReleaseOptions()
log = logging.getLogger(__name__)


@flow(flow_run_name="{options.build} report", persist_result=False, log_prints=False)
async def report(options: ReportOptions = REPORT) -> str:
    """A build → one page about it: funnel, pools, votes, leaderboards, faults, transcripts."""
    options = await named_run(options, "report")
    path = await asyncio.to_thread(write_report, Layout.default(), options.build, options.transcripts)
    await post_report(options.build, path)
    return str(path)


@flow(flow_run_name="{options.build} check", persist_result=False, log_prints=False)
async def check(options: BuildOptions = CHECK) -> int:
    """A build → whether what must be true of its rows is; returns the number of checks that found nothing."""
    options = await named_run(options, "check")
    outcomes = await asyncio.to_thread(check_build, Layout.default(), options.build)
    await post_checks(options.build, outcomes)
    broken = [outcome for outcome in outcomes if outcome.rows]
    if broken:
        found = "; ".join(f"{outcome.name}: {outcome.rows} rows" for outcome in broken)
        raise ChecksFoundRows(f"{len(broken)} of {len(outcomes)} checks found rows of build {options.build}: {found}")
    return len(outcomes)


@flow(flow_run_name="{options.build} release", persist_result=False, log_prints=False)
async def release(options: ReleaseOptions = RELEASE) -> dict[str, int]:
    """A build → its frozen items and seeds as a folder that stands alone; returns the rows of each table."""
    options = await named_run(options, "release")
    return await asyncio.to_thread(_release, Layout.default(), options)


def _release(layout: Layout, options: ReleaseOptions) -> dict[str, int]:
    folder = Path(options.folder).expanduser() if options.folder else layout.root / "releases" / options.build
    rows = write_release(layout, options.build, folder, LOCAL_PROVIDERS)
    log.info("released build %s to %s", options.build, folder)
    return rows
