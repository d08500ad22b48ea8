# SPDX-License-Identifier: Apache-2.0
"""``sfumato evidence``: what a run found as one pack that can be filed, and later verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import GUARANTEE_FAILED, Console
from sfumato.errors import ParameterError

if TYPE_CHECKING:
    from sfumato.auditing.evidence import EvidencePack
    from sfumato.auditing.verify_evidence import VerifiedEvidence

_VERIFY = "Verifying"

HELP = options.help_text(
    "Put what a run of a policy found into one pack to file, or verify such a pack.",
    "The pack is a ZIP file: the report, audit.json and its schema, the policy, SHA-256 of the original, the release "
    "and the partition, a bill of materials, and questionnaires with what was measured filled in. It holds no records. "
    "Run the policy first. Exit code 1: a file has changed since the run; nothing is written.",
    "With --verify, the pack is compared with the release that came with it, and the groups of the release are counted "
    "again. Exit code 1: they do not belong together.",
    examples=[
        "sfumato evidence policy.toml -o pack.zip --for edpb,iso27559",
        "sfumato evidence policy.toml -o pack.zip --key ~/.ssh/id_ed25519",
        "sfumato evidence --verify pack.zip released.csv",
        "sfumato evidence --verify pack.zip released.csv --with partition.json --key officer.pub",
    ],
)


@options.command
def evidence(
    file: Annotated[
        Path,
        typer.Argument(help="The policy; with --verify, the release.", metavar="POLICY|RELEASE", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The pack, a ZIP file; a name without an ending gets .zip.",
            rich_help_panel=options.OUTPUT,
            show_default="pack.zip",
        ),
    ] = None,
    questionnaires: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            help="Questionnaires to fill in: edpb, iso27559, ema, hipaa, ehds, nist.",
            metavar="NAME,...",
            show_default="none",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="OpenSSH key: the private one to sign with, or with --verify the signer's public one. The signature "
            "is the file PACK.sig.",
            show_default="no signature",
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            help="Date of the pack, such as 2027-01-31.", metavar="DATE", show_default="SOURCE_DATE_EPOCH, or today"
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(help="A pack to verify.", metavar="PACK", rich_help_panel=_VERIFY, show_default="none"),
    ] = None,
    others: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            help="More files that the pack must be about: the policy, the partition, the original. Repeat the option.",
            metavar="FILE",
            rich_help_panel=_VERIFY,
            show_default="none",
        ),
    ] = None,
    force: options.Force = False,
    *,
    console: Console,
) -> None:
    """Write or verify a pack of evidence; ``HELP`` is what users read."""
    if verify is not None:
        given = {"-o": output, "--for": questionnaires, "--date": date}
        if wrong := [option for option, value in given.items() if value is not None]:
            raise ParameterError(f"{wrong[0]} with --verify: expected a release to verify. Leave {wrong[0]} out.")
        _verify(console, verify, file, others or [], key)
        return
    if others:
        raise ParameterError("--with without --verify: expected a pack to verify. Name it with --verify.")
    from sfumato.auditing.evidence import evidence as make

    wanted = options.split_names(questionnaires)
    made = make(
        file,
        output or Path("pack.zip"),
        questionnaires=wanted,
        key=key,
        date=date,
        force=force,
        reporter=console,
    )
    _show_pack(console, made)


def _show_pack(console: Console, made: EvidencePack) -> None:
    paths = [made.path, *([made.signature] if made.signature is not None else [])]
    if console.as_json:
        console.result({"written": [str(path) for path in paths], "manifest": dict(made.manifest)})
        return
    console.heading("files that the pack is about")
    console.facts([(role, own["file"], own["sha256"][:16]) for role, own in made.manifest["about"].items()])
    console.text(f"Written: {', '.join(map(str, paths))}")


def _verify(console: Console, pack: Path, release: Path, others: list[Path], key: Path | None) -> None:
    from sfumato.auditing.verify_evidence import verify_evidence

    with console.step(f"verifying {pack.name} and counting the groups of {release.name}"):
        found = verify_evidence(pack, release, others=others, key=key)
    if console.as_json:
        console.result(found.to_dict())
    else:
        _show_checks(console, found, has_key=key is not None)
    if not found.belongs_together:
        raise typer.Exit(GUARANTEE_FAILED)


def _show_checks(console: Console, found: VerifiedEvidence, *, has_key: bool) -> None:
    console.heading(f"pack of {found.date}")
    console.facts([(check.name, "yes" if check.holds else "no", check.sentence) for check in found.checks])
    if not has_key:
        console.note("no signature was checked: hashes show that files belong together, not who made them.")
    holds = found.belongs_together
    both = "belong together" if holds else "do not belong together"
    console.verdict(f"The pack and the release {both}.", holds=holds)
