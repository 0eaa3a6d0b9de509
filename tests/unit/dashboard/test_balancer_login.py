"""Users whom a load balancer on AWS has signed in: who gets in, and attacks on its proof."""
# ruff: noqa: E402

from __future__ import annotations

import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.extras import needs_extra

needs_extra("cryptography", "aws")

from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.unit.dashboard.tables import DashboardTables
from webordinary.config import Config, ConfigError
from webordinary.entrypoints.dashboard.login import HOOKS, OPEN_PATHS
from webordinary.entrypoints.dashboard.oidc import BALANCER_HEADER, MOST_KEYS, BalancerLogin, BalancerSettings
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.model.console import Role
from webordinary.model.errors import Transient

URL, FORM = "https://console.example.com", {"Origin": "https://console.example.com"}
ARN = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:loadbalancer/app/webordinary-console/50dc6c495c0c9188"
ISSUER, CLIENT, KEY_ID = "https://login.example.com", "console", "12345678-1234-1234-1234-123456789012"
NOW = 1_800_000_000.0
OLGA, VERA = {"sub": "7", "email": "Olga@example.com", "email_verified": True}, {"email": "vera@example.com"}
KEY, OTHERS_KEY = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def encoded(value: bytes) -> str:
    return urlsafe_b64encode(value).decode()  # padded, as the load balancer does


def proof(
    claims: Mapping[str, object] = OLGA, key: ec.EllipticCurvePrivateKey = KEY, *, sign: bool = True, **head: object
) -> str:
    """What the load balancer writes into the header."""
    told = {"alg": "ES256", "kid": KEY_ID, "signer": ARN, "iss": ISSUER, "client": CLIENT, "exp": NOW + 120, **head}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in (told, dict(claims)))
    halves = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{encoded(b''.join(half.to_bytes(32, 'big') for half in halves)) if sign else ''}"


@dataclass
class BalancedConsole:
    """A console behind a load balancer, and the keys that AWS publishes for it."""

    world: DashboardTables
    keys: dict[str, bytes] = field(default_factory=lambda: {KEY_ID: pem(KEY)})
    asked: list[tuple[str, str]] = field(default_factory=list)
    claim: str = "email"

    def key_of(self, region: str, key_id: str) -> bytes:
        self.asked.append((region, key_id))
        if key_id not in self.keys:
            raise Transient("status 404")
        return self.keys[key_id]

    def login(self) -> BalancerLogin:
        known = frozenset({"olga@example.com", "7"}), frozenset({"vera@example.com"})
        return BalancerLogin(BalancerSettings(ARN, ISSUER, CLIENT, self.claim, *known), self.key_of, lambda: NOW)

    def visitor(self, *values: str) -> TestClient:
        app = create_app(self.world.dashboard(public_url=URL, domain="sites.example", balancer=self.login()))
        client = TestClient(app, base_url=URL, follow_redirects=False)
        client.headers.update([(BALANCER_HEADER, value) for value in values])
        return client


@pytest.fixture
def balancer(tmp_path: Path) -> Iterator[BalancedConsole]:
    world = DashboardTables(tmp_path)
    yield BalancedConsole(world)
    world.database.close()


def refused(balancer: BalancedConsole, *values: str) -> bool:
    with balancer.visitor(*values) as visitor:
        answers = [visitor.get("/"), visitor.get("/api/status"), visitor.post("/mails", headers=FORM)]
    return {answer.status_code for answer in answers} == {401}


def test_an_operator_acts_and_a_viewer_looks(balancer: BalancedConsole, caplog: pytest.LogCaptureFixture) -> None:
    form = {"from": "scott@example.com", "subject": "Spring", "text": "Set the title to Sale"}
    with balancer.visitor(proof()) as olga:
        assert olga.get("/").status_code == 200
        assert "Sign out" in olga.get("/").text
        with caplog.at_level(logging.WARNING):
            assert olga.post("/mails", data=form, headers=FORM).status_code == 303
    assert "@example.com: POST /mails" in caplog.text, "what she did is written down"  # a program masks the name
    with balancer.visitor(proof(VERA | {"email_verified": "true"})) as vera:
        assert vera.get("/").status_code == 200
        assert vera.post("/mails", data=form, headers=FORM).status_code == 403
    assert set(balancer.asked) == {("eu-west-1", KEY_ID)}
    assert len(balancer.asked) == 2, "a key is fetched once by each process"


def test_no_page_is_there_without_a_proof_whatever_its_route(balancer: BalancedConsole) -> None:
    """The health check and the signed webhook come without one; everything else that is open leads nowhere here."""
    with balancer.visitor() as nobody:
        routes = [route for route in nobody.app.routes if isinstance(route, Route)]  # type: ignore[attr-defined]
        for route in routes:
            for method in route.methods or ():
                path = route.path.replace("{letter_id:int}", "1").replace("{position:int}", "0")
                answer = nobody.request(method, path, headers=FORM)
                if not path.startswith(OPEN_PATHS):
                    assert answer.status_code == 401, (method, path)
                elif not path.startswith(("/healthz", "/static/", HOOKS)):
                    assert answer.status_code in (404, 405), (method, path)


def test_a_forged_header_opens_nothing(balancer: BalancedConsole) -> None:
    for forged in ("", "olga@example.com", "a.b.c", "..", proof(key=OTHERS_KEY), proof(sign=False), "x" * 20_000):
        assert refused(balancer, forged), forged[:60]
    head, _, signature = proof().split(".")
    other = encoded(json.dumps({**OLGA, "email": "vera@example.com"}).encode())
    assert refused(balancer, f"{head}.{other}.{signature}"), "the claims of another"


def test_a_second_header_beside_the_load_balancers_opens_nothing(balancer: BalancedConsole) -> None:
    assert balancer.login().user_of([proof(), proof()]) is None
    assert balancer.login().user_of([]) is None


def test_another_load_balancers_word_counts_for_nothing(balancer: BalancedConsole) -> None:
    """Anybody may have one in that region; AWS publishes its key at the same place."""
    balancer.keys["00000000-0000-0000-0000-000000000000"] = pem(OTHERS_KEY)
    theirs = ARN.replace("111122223333", "444455556666")
    assert refused(balancer, proof(key=OTHERS_KEY, kid="00000000-0000-0000-0000-000000000000", signer=theirs))
    assert refused(balancer, proof(client="another")), "another application of the same load balancer"
    assert refused(balancer, proof(iss="https://login.example.org"))
    assert refused(balancer, proof({**OLGA, "iss": "https://login.example.org"}))


def test_an_expired_proof_opens_nothing(balancer: BalancedConsole) -> None:
    for past in (NOW, NOW - 1, 0, None, "9999999999", float("nan")):
        assert refused(balancer, proof(exp=past)), past
    assert refused(balancer, proof({**OLGA, "exp": NOW - 1}))


def test_a_proof_without_a_signature_algorithm_or_with_another_opens_nothing(balancer: BalancedConsole) -> None:
    for algorithm in ("none", "None", "", "HS256", "RS256", "ES384", None):
        assert refused(balancer, proof(alg=algorithm)), algorithm
        assert refused(balancer, proof(alg=algorithm, sign=False)), algorithm
    balancer.keys[KEY_ID] = pem(rsa.generate_private_key(65537, 2048))
    assert refused(balancer, proof()), "a key of another kind"
    balancer.keys[KEY_ID] = b"not a key"
    assert refused(balancer, proof())


def test_the_id_of_a_key_leads_to_no_other_address(balancer: BalancedConsole) -> None:
    for key_id in ("../../etc", "@evil.example/", KEY_ID.upper() + "/..", f"{KEY_ID}\r\nX: y", 7, None):
        assert refused(balancer, proof(kid=key_id)), key_id
    assert balancer.asked == []


def test_a_key_that_cannot_be_fetched_lets_nobody_in_and_keys_are_bounded(balancer: BalancedConsole) -> None:
    assert refused(balancer, proof(kid=KEY_ID.replace("12345678", "87654321")))
    login = balancer.login()
    for number in range(MOST_KEYS + 5):
        balancer.keys[key_id := f"12345678-1234-1234-1234-{number:012d}"] = pem(KEY)
        assert login.user_of([proof(kid=key_id)])
    assert len(login._keys) == MOST_KEYS


def test_who_is_not_on_the_lists_or_not_verified_is_refused(balancer: BalancedConsole) -> None:
    for claims in ({"email": "eve@example.com", "email_verified": True}, VERA, {**OLGA, "email_verified": "false"}, {},
                   {"email": 7, "email_verified": True}, {"email": "", "email_verified": True}):  # fmt: skip
        assert refused(balancer, proof(claims)), claims
    balancer.claim = "sub"
    found = balancer.login().user_of([proof()])
    assert found
    assert (found.name, found.role) == ("7", Role.OPERATOR)


def test_the_header_on_another_path_in_is_not_read(balancer: BalancedConsole) -> None:
    """Without the setting it is a header like any other; with it, no other login exists beside it."""
    plain = TestClient(create_app(balancer.world.dashboard(forward_auth_header="")), base_url="http://127.0.0.1:8080")
    with plain as page:
        assert page.get("/", headers={BALANCER_HEADER: proof()}).status_code == 200, "no login, nobody signed in"
        assert "Sign out" not in page.get("/", headers={BALANCER_HEADER: proof()}).text
    with balancer.visitor() as nobody:
        for name in ("X-Amzn-Oidc-Identity", "X-Amzn-Oidc-Accesstoken", "X-Forwarded-User", "Authorization"):
            assert nobody.get("/", headers={name: proof()}).status_code == 401
            assert nobody.get("/", headers={name: f"Bearer {proof()}"}).status_code == 401
        assert nobody.get("/", params={BALANCER_HEADER: proof()}).status_code == 401
        nobody.cookies.set(BALANCER_HEADER, proof())
        assert nobody.get("/").status_code == 401
    with balancer.visitor(proof()) as olga:
        assert olga.get("/", headers={"Host": "10.0.1.7:8080"}).status_code == 421, "by the task's own address"


def test_a_form_of_another_site_changes_nothing_although_the_load_balancer_signs_it(balancer: BalancedConsole) -> None:
    with balancer.visitor(proof()) as olga:
        for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Authorization": "Bearer x"},
                        {"Origin": "http://console.example.com"}):  # fmt: skip
            assert olga.post("/mails", data={"text": "x"}, headers=headers).status_code == 403, headers
        assert olga.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert balancer.world.sent == []


def test_signing_out_ends_the_load_balancers_session(balancer: BalancedConsole) -> None:
    with balancer.visitor(proof()) as olga:
        answer = olga.post("/logout", headers=FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    ended = answer.headers.get_list("set-cookie")
    assert [one.partition("=")[0] for one in ended] == [f"AWSELBAuthSessionCookie-{number}" for number in range(4)]
    assert all("Max-Age=0" in one for one in ended)


SETTINGS = {
    "WEBORDINARY_BACKEND": "aws", "WEBORDINARY_PUBLIC_URL": URL, "WEBORDINARY_HOST": "0.0.0.0",
    "WEBORDINARY_ALB_ARN": ARN, "WEBORDINARY_ALB_ISSUER": ISSUER, "WEBORDINARY_ALB_CLIENT_ID": CLIENT,
    "WEBORDINARY_CONSOLE_OPERATORS": "olga@example.com",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"WEBORDINARY_ALB_ARN": ""}, "the page has no login there but the one of a load balancer"),
        ({"WEBORDINARY_ALB_ARN": "arn:aws:iam::1:role/x"}, "must be the ARN of an application load balancer"),
        ({"WEBORDINARY_ALB_ISSUER": ""}, "needs alb_issuer"),
        ({"WEBORDINARY_ALB_CLIENT_ID": ""}, "needs alb_issuer, alb_client_id"),
        ({"WEBORDINARY_PUBLIC_URL": "http://console.example.com"}, "public_url with https"),
        ({"WEBORDINARY_CONSOLE_OPERATORS": ""}, "has no user"),
        ({"WEBORDINARY_BACKEND": "embedded"}, "is for backend aws"),
    ],
)
def test_a_login_with_a_part_missing_is_refused_in_words(change: dict[str, str], words: str) -> None:
    Config.load(env=SETTINGS)
    with pytest.raises(ConfigError, match=words):
        Config.load(env={**SETTINGS, **change})
