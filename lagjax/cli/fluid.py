"""`lagjax fluid`: does the fluid limit of a policy settle at its fixed point?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.outputs import give, json_page, places
from lagjax.cli.running import start
from lagjax.cli.solving import solving_line
from lagjax.cli.terminal import note, progress_bar
from lagjax.errors import InputError
from lagjax.policies import POLICIES

DEFAULT_FOLDER = Path("lagjax-fluid")


@options.takes("how", options.StartOptions)
@options.takes("files", options.FileOptions)
def fluid(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help=f"One of {inputs.GALLERY_NAMES}."),
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Load rho, in (0, 1 - k/R]. [default: 0.8, or less if need be]")
    ] = None,
    policy: Annotated[str, typer.Option(help="One policy.")] = "lag",
    starts: Annotated[int, typer.Option(help="Trajectories followed.")] = 200,
    steps: Annotated[
        int | None, typer.Option(help="Steps of each. [default: as many as the spectrum asks for, up to 100,000]")
    ] = None,
    files: options.FileOptions = options.NO_FILES,
    seed: options.Seed = 0,
    selection: options.Selection = "canonical",
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "report and plot")] = None,
    json_file: options.Json = None,
    how: options.StartOptions = options.AT_ONCE,
) -> None:
    """Verify the fluid limit: fixed point, spectrum, and a search for trajectories that do not settle there.

    Example: lagjax fluid priority --load 0.8

    Example: lagjax fluid low-rank --policy greedy --starts 1000 --json -
    """
    start(how)
    from lagjax.fluid.describe import describe
    from lagjax.fluid.verify import verify
    from lagjax.runs.files import write_bytes

    instance = inputs.one_instance(name, files, seed, "fluid")
    instance = instance.with_load(min(0.8, inputs.default_loads(instance)[-1]) if load is None else load)
    if policy not in POLICIES:
        raise InputError(f"--policy: no policy '{policy}'; choose one policy of {', '.join(POLICIES)}")
    folder, json_file = places(
        out, json_file, default=DEFAULT_FOLDER, writes=["fluid.png", "fluid.json", "report.txt"], reads=inputs.files_of(files),
    )  # fmt: skip
    with progress_bar("fluid", "steps", how.progress) as progress, solving_line(how.progress, place=1):
        report = verify(instance, policy, selection=selection, starts=starts, steps=steps, seed=seed, progress=progress)
    text = describe(report)

    def content():
        return {"seed": seed, "rows": [_row(report)]}

    if folder is not None:
        from lagjax.plots.fluid import plot_fluid
        from lagjax.plots.pictures import keep_picture

        keep_picture(plot_fluid(report), folder / "fluid.png")
        write_bytes(folder / "fluid.json", json_page("fluid", content).encode())
        write_bytes(folder / "report.txt", f"{text}\n".encode())
    give("fluid", text, json_file, content)
    if folder is not None:
        note(f"written: {folder}/ (report.txt, fluid.json and fluid.png)")


def _row(report):
    found = report.trajectories
    return {
        "instance": report.instance,
        "load": report.load,
        "policy": report.policy,
        "selection": report.selection,
        "residual": report.residual,
        "fluid_reward": report.reward,
        "occ_ub_0": report.occ_ub_0,
        "spectral_radius": report.spectrum.radius,
        "measured_rate": report.measured_rate,
        "kink_distance": report.kink.distance,
        "kink_task": report.tasks[report.kink.task_type],
        "kink_cause": report.kink.cause,
        "sides": report.sides,
        "settled": int((found.distance[-1] <= found.tolerance).sum()),
        "starts": found.distance.shape[1],
        "steps": int(found.times[-1]),
        "max_final_distance": found.max_final_distance,
        "tolerance": found.tolerance,
        "slowest_start": found.kind[found.slowest],
        "attractor": report.attractor,
        "cycle_length": found.cycle_length,
    }
