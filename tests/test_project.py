"""The project's own files agree with each other and hold nothing of one machine."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(project: dict) -> dict[str, str]:
    lines = project["dependencies"] + [line for extra in project["optional-dependencies"].values() for line in extra]
    return {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, lines)}


def tracked() -> list[Path]:
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in out.split("\0") if name and (ROOT / name).is_file()]


def test_environment_yml_lists_what_pyproject_lists(project):
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert set(conda) == {"name", "channels", "dependencies"}
    listed = [line for line in conda["dependencies"] if isinstance(line, str)]
    (pip,) = [entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict)]
    found = {canonicalize_name(r.name): str(r.specifier) for r in map(Requirement, (x for x in pip if x != "-e ."))}
    assert found == requirements(project)
    assert any(line.startswith("python") and project["requires-python"].lstrip(">=") in line for line in listed)


def test_lock_pins_every_requirement_with_hashes_and_without_addresses(project):
    lock = (ROOT / "requirements.lock").read_text()
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", lock, re.M))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    for name, specifier in requirements(project).items():
        assert name in pins, f"{name} is not in requirements.lock"
        assert Requirement(f"{name}{specifier}").specifier.contains(pins[name]), f"{name} {pins[name]} breaks {specifier}"
    assert len(re.findall(r"--hash=sha256:", lock)) >= len(pins)
    assert "://" not in lock


def test_no_path_of_one_machine_and_no_generated_output_in_git():
    ours = [path for path in tracked() if path.suffix in {".py", ".md", ".yaml", ".yml", ".toml", ".js", ".css", ".csv", ""}]
    machine = re.compile("/" + r"(work|root|home/\w+|opt/pypi)/")
    for path in ours:
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not machine.search(text), f"{path.relative_to(ROOT)} names a path of one machine"
    assert not [path for path in tracked() if path.suffix == ".ipynb" or "_build" in path.parts]


def test_import_direction():
    """Imports go down only: explorer, figures, models, facts."""
    package = ROOT / "src" / "inside_deepinfer"
    floors = {"facts": 0, "model": 1, "cache": 2, "serving": 2, "numerics": 2, "tokens": 2, "figures": 5, "explorer": 6,
              "publish": 7}
    shared = {"scenario": 3, "catalogue": 4, "audit": 4, "studies": 4, "conclusions": 4}
    libraries = {"plotly": 5, "panel": 6, "panel_material_ui": 6, "bokeh": 6}
    for path in package.rglob("*.py"):
        part = path.relative_to(package).parts[0].removesuffix(".py")
        floor = floors.get(part, shared.get(part))
        if floor is None:  # the command line and the package's own file sit on top
            continue
        for line in path.read_text().splitlines():
            found = re.match(r"\s*(?:from|import) (inside_deepinfer\.)?(\w+)", line)
            if not found:
                continue
            ours, name = found.groups()
            limit = (floors | shared).get(name, 0) if ours else libraries.get(name, 0)
            assert limit <= floor, f"{path.relative_to(package)} imports upwards: {line.strip()}"


def test_dashboards_hold_no_logic():
    for path in (ROOT / "dashboards").glob("*.py"):
        code = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith(("#", '"""'))]
        assert len(code) <= 8, f"{path.name} has {len(code)} lines of code"
        assert not any(line.lstrip().startswith(("def ", "class ", "lambda")) for line in code)
