"""A small sign-in service (OpenID Connect) on loopback, with real RS256 keys, that can be told to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

Claims = dict[str, Any]


@cache
def _key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


class SignInService:
    """Authorizes everybody as ``person``; ``change`` may alter claims, ``sign`` how they become a token."""

    client_id = "cloister-hub"
    client_secret = "a secret of the client"

    def __init__(self) -> None:
        self.key = _key()
        self.person: Claims = {"sub": "person-1", "preferred_username": "Grace", "name": "Grace Hopper"}
        self.change: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[dict[str, str]] = []
        self.token_requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def authorize(self, address: str) -> str:
        """Do what the person's browser and the service do together; return the address to which it is sent back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.issuer}/authorize?")
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    def signed(self, claims: Claims, key: RSAKey | None = None) -> str:
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, key or self.key)

    def claims(self, asked: dict[str, str]) -> Claims:
        moment = int(time.time())
        return {
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": moment,
            "exp": moment + 300,
            "nonce": asked["nonce"],
            **self.person,
        }

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, Claims]:
        self.token_requests += 1
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        secret = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if (
            asked is None
            or authorization != f"Basic {secret}"
            or asked["code_challenge"] != challenge.decode().rstrip("=")
            or asked["redirect_uri"] != form.get("redirect_uri")
        ):
            return 400, {"error": "invalid_grant"}
        token = self.sign(self.change(self.claims(asked)))
        return 200, {"access_token": "unused", "token_type": "Bearer", "id_token": token}

    def metadata(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/.well-known/openid-configuration":
                    self._answer(200, service.metadata())
                elif self.path == "/keys":
                    self._answer(200, {"keys": [service.key.as_dict(private=False)]})
                else:
                    self._answer(404, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(*service.exchange(form, self.headers.get("Authorization", "")))

            def _answer(self, status: int, body: Claims) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler
