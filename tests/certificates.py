"""Self-signed certificates for servers that a test starts."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    cert: Path
    key: Path


def certificate(folder: Path, name: str = "localhost") -> Certificate:
    """Make one with `openssl`; a client trusts it where SSL_CERT_FILE names its file."""
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    names = ["-addext", f"subjectAltName=DNS:{name},DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(made.key), "-out", str(made.cert)]
    subprocess.run(["openssl", "req", "-x509", *options, *names, *files], check=True, capture_output=True)
    return made
