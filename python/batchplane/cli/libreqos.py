# SPDX-License-Identifier: BSD-3-Clause
"""libreqos.py - the arguments of `batchplane libreqos`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.consoles import errors
from .words import parse_link_rate

app = typer.Typer()


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

    rates = {
        "download": parse_link_rate(download, "--download", may_be_none=True),
        "upload": parse_link_rate(upload, "--upload", may_be_none=True),
    }
    link_bps = {direction: rate for direction, rate in rates.items() if rate}
    network = read_network(network_file)
    circuits, warnings = read_devices(devices_file, network)
    shaper = Shaper(network, circuits)
    overbooked = write_shaper(shaper, out, link_bps, {"access": access, "core": core})
    console = errors()
    for warning in [*warnings, *overbooked]:
        console.print(f"warning: {warning.line()}", style="yellow", soft_wrap=True, markup=False)
    prefixes = sum(len(circuit.prefixes) for circuit in circuits)
    told = f"{len(network.places)} nodes, {len(circuits)} circuits, {prefixes} prefixes"
    console.print(f"{out / 'shaper.yaml'}: {told}", style="dim", soft_wrap=True)
