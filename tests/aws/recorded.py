"""Clients of AWS that give recorded answers, for what no emulator has."""
# ruff: noqa: ANN401

from __future__ import annotations

from typing import Any

import boto3
from botocore.stub import Stubber

REGION = "us-east-1"


class Recorded:
    """Clients that answer what was recorded, in order, and nothing else."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._stubs: dict[str, Stubber] = {}

    def __call__(self, service: str, region: str = REGION) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(  # type: ignore[call-overload]
                service, region_name=region, aws_access_key_id="x", aws_secret_access_key="x"
            )
            self._stubs[service] = Stubber(self._clients[service])
            self._stubs[service].activate()
        return self._clients[service]

    def answers(self, service: str, call: str, answer: dict[str, Any], given: dict[str, Any] | None = None) -> None:
        self(service)
        self._stubs[service].add_response(call, answer, given)

    def refuses(self, service: str, call: str, code: str, message: str = "") -> None:
        self(service)
        self._stubs[service].add_client_error(call, code, message)

    def done(self) -> None:
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()
