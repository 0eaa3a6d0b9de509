"""JSONPath expressions compiled to functions of Data: paths, intrinsic calls and payload templates."""

from __future__ import annotations

from webordinary.asl.errors import Failure, InvalidDefinition, runtime
from webordinary.asl.paths import BadPath, Missing, Path, compile_path
from webordinary.asl.query.base import Data, Expression
from webordinary.asl.query.intrinsics import BadIntrinsic, compile_intrinsic
from webordinary.asl.values import JSON, dump


def compiled(text: object, field: str, where: str) -> Path:
    """A path of a definition; raises InvalidDefinition with its place."""
    if not isinstance(text, str):
        raise InvalidDefinition(where, field, f"must be a path, not {text!r}")
    try:
        return compile_path(text)
    except BadPath as problem:
        raise InvalidDefinition(where, field, str(problem)) from problem


def path_expression(text: object, field: str, where: str) -> Expression:
    """InputPath, OutputPath, ItemsPath…: a path whose absence AWS words its own way."""
    path = compiled(text, field, where)
    if path.text == "$":
        return lambda data: data.input

    def read(data: Data) -> JSON:
        try:
            return data.look_up(path)
        except Missing as problem:
            raise runtime(f"Invalid path '{path.text}' : {problem}") from problem

    return read


def value_expression(text: object, field: str, where: str) -> Expression:
    """The right side of a `name.$` field: a path or an intrinsic call."""
    if not isinstance(text, str):
        raise InvalidDefinition(where, field, f"must be a path or an intrinsic function, not {text!r}")
    if text.startswith("States."):
        return _intrinsic(text, field, where)
    path = compiled(text, field, where)
    if path.text == "$":
        return lambda data: data.input

    def read(data: Data) -> JSON:
        try:
            return data.look_up(path)
        except Missing as problem:
            seen = dump(data.context() if path.root == "$$" else data.input)
            raise runtime(
                f"The JSONPath '{text}' specified for the field '{field}' could not be found in the input '{seen}'"
            ) from problem

    return read


def _intrinsic(text: str, field: str, where: str) -> Expression:
    try:
        call = compile_intrinsic(text)
    except (BadIntrinsic, BadPath) as problem:
        raise InvalidDefinition(where, field, str(problem)) from problem

    def evaluate(data: Data) -> JSON:
        try:
            return call(data)
        except Missing as problem:
            raise runtime(f"The function '{text}' had the following error: {problem}") from problem
        except BadIntrinsic as problem:
            raise Failure("States.IntrinsicFailure", str(problem), located=True) from problem

    return evaluate


def template(value: JSON, where: str) -> Expression:
    """Compile a payload template; parts without expressions are shared, not copied."""
    part = _part(value, where)
    return part if part is not None else lambda _: value


def _part(value: JSON, where: str) -> Expression | None:
    """None for a part that is constant."""
    if isinstance(value, dict):
        return _object(value, where)
    if isinstance(value, list):
        return _array(value, where)
    return None


def _object(value: dict[str, JSON], where: str) -> Expression | None:
    live: list[tuple[str, Expression]] = []
    constant: dict[str, JSON] = {}
    for key, inner in value.items():
        if key.endswith(".$"):
            live.append((key[:-2], value_expression(inner, key, where)))
        elif (part := _part(inner, where)) is not None:
            live.append((key, part))
        else:
            constant[key] = inner
    if not live:
        return None

    def build(data: Data) -> JSON:
        made = dict(constant)
        for key, part in live:
            made[key] = part(data)
        return made

    return build


def _array(value: list[JSON], where: str) -> Expression | None:
    parts = [_part(inner, where) for inner in value]
    if all(part is None for part in parts):
        return None
    return lambda data: [inner if part is None else part(data) for part, inner in zip(parts, value, strict=True)]
