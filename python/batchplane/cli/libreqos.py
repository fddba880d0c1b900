# SPDX-License-Identifier: BSD-3-Clause
"""libreqos.py - the words of `batchplane libreqos`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors
from ..base.problems import BadInput, Problem
from ..base.units import parse_scaled

app = typer.Typer()


def _rate_bps(text: str, option: str) -> int:
    rate = parse_scaled(text)
    if rate is None or not (rate == 0 or 8_000 <= rate <= 1e13):
        fix = "8000 to 10000000000000 bit/s, such as 1G; 0 for none"
        raise BadInput(Problem(f"'{text}' is no rate", "command line", option, fix))
    return round(rate)


@app.command()
def libreqos(
    network_file: Annotated[Path, typer.Argument(metavar="network.json", help="the network")],
    devices_file: Annotated[
        Path, typer.Argument(metavar="ShapedDevices.csv", help="the customers' devices")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="where the files go")],
    download: Annotated[str, typer.Option(help="rate towards customers in bit/s, such as 10G")],
    upload: Annotated[str, typer.Option(help="rate towards the core in bit/s")],
    access: Annotated[str, typer.Option(help="interface towards the customers")] = "access0",
    core: Annotated[str, typer.Option(help="interface towards the core")] = "core0",
) -> None:
    """Turn the files of a LibreQoS network into a pipeline that shapes it, both ways.

    Writes shaper.yaml, download.csv, upload.csv and prefixes.csv, and tells which circuits cannot
    have their minimum.
    """
    from ..egress.libreqos.devices import read_devices
    from ..egress.libreqos.network import read_network
    from ..egress.libreqos.shaper import Shaper, write_shaper

    rates = {"download": _rate_bps(download, "--download"), "upload": _rate_bps(upload, "--upload")}
    link_bps = {direction: rate for direction, rate in rates.items() if rate}
    network = read_network(network_file)
    circuits, warnings = read_devices(devices_file, network)
    shaper = Shaper(network, circuits)
    write_shaper(shaper, out, link_bps, {"access": access, "core": core})
    console = errors()
    for warning in [*warnings, *shaper.overbooked(link_bps)]:
        console.print(f"warning: {warning.line()}", style="yellow", soft_wrap=True, markup=False)
    prefixes = sum(len(circuit.prefixes) for circuit in circuits)
    told = f"{len(network.places)} nodes, {len(circuits)} circuits, {prefixes} prefixes"
    console.print(f"{out / 'shaper.yaml'}: {told}", style="dim", soft_wrap=True)
