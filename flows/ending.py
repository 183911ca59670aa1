"""How a run ends, for those who watch it: well, or `Partial`, where rows were lost.

Where a repetition may bring the lost rows, `Partial` is of Prefect's type Failed: it stands among the failures, and
the retries of a deployment redo just those rows. Where it would not, it is of type Completed: nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from prefect import State, get_run_logger
from prefect.client.schemas.objects import StateType
from prefect.events import emit_event

from flows.results import StageResult

PARTIAL = "Partial"
EVENT = "colloquy.stage.partial"


def ending(results: Sequence[StageResult]) -> list[StageResult] | State[list[StageResult]]:
    """What a flow returns: its results, or the state `Partial` with them where rows failed."""
    lost = [result for result in results if result.n_failed]
    if not lost:
        return list(results)
    redone = any(result.partial for result in lost)
    told = "; ".join(losses(result) for result in lost)
    get_run_logger().warning("Partial: %s", told)
    return State(
        type=StateType.FAILED if redone else StateType.COMPLETED,
        name=PARTIAL,
        message=f"{told}." + (" A retry redoes the rows whose failure may pass." if redone else ""),
        data=list(results),
    )


def losses(result: StageResult) -> str:
    """`voting: 4 of 32 rows failed, some in a way that may pass`."""
    why = "some in a way that may pass" if result.partial else "for good"
    return f"{result.stage}: {result.n_failed:,} of {result.n_in:,} rows failed, {why}"


def announce(result: StageResult) -> None:
    """An event for automations, where a stage has lost rows."""
    if result.n_failed:
        emit_event(
            EVENT,
            resource={
                "prefect.resource.id": f"colloquy.stage.{result.build}.{result.stage}",
                "prefect.resource.name": f"{result.stage} of {result.build}",
                "colloquy.build": result.build,
                "colloquy.stage": result.stage,
                "colloquy.may-pass": str(result.partial).lower(),
            },
            payload={"n_in": result.n_in, "n_failed": result.n_failed, "may_pass": result.partial},
        )


async def results_of(flow: Callable[..., Any], options: Any) -> list[StageResult]:
    """What a flow brings, also where rows were lost. Raises what it raises."""
    state: State[Any] = await flow(options, return_state=True)
    found = await state.aresult(raise_on_failure=False)
    if isinstance(found, BaseException):
        raise found
    results: list[StageResult] = found
    return results
