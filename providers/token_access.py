"""Where and as whom a provider is called that takes one token: read from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pricing.errors import InputError, MissingCredentialsError


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccess:
    """Where and as whom to call.

    Attributes:
        token: never printed.
        endpoint: an https address; None: the public one.
        ca: file of the certificate authority to trust instead of the system's.
    """

    token: str = field(repr=False)
    endpoint: str | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenVariables:
    """The variables that name an access, and what is said where they do not.

    Attributes:
        token: variable of the token.
        endpoint: variable of an address in place of the public one.
        ca: variable of the file of a certificate authority.
        missing: what to do where there is no token, behind the variable's name.
        word: what the provider calls a token.
    """

    token: str
    endpoint: str
    ca: str
    missing: str
    word: str = "token"

    def read(self, environment: Mapping[str, str]) -> TokenAccess:
        """Return the access that the environment names.

        Raises:
            MissingCredentialsError: there is no token.
            InputError: the token cannot be one, the endpoint is not https, or the certificate file
                is not there.
        """
        token = environment.get(self.token, "").strip()
        if not token:
            raise MissingCredentialsError(f"{self.token} {self.missing}")
        if not token.isprintable() or " " in token or not token.isascii():
            again = f"copy the {self.word} again"
            raise InputError(f"{self.token} holds blanks or control characters; {again}.")
        endpoint = environment.get(self.endpoint, "").strip() or None
        if endpoint is not None and not endpoint.startswith("https://"):
            raise InputError(
                f"{self.endpoint} is {endpoint!r:.80}; a {self.word} is sent over https only. "
                "Write https://HOST[:PORT]."
            )
        ca = Path(environment[self.ca]) if environment.get(self.ca) else None
        if ca is not None and not ca.is_file():
            problem = f"{self.ca} names {ca}, and there is no such file"
            raise InputError(f"{problem}; it takes a PEM file.")
        return TokenAccess(token=token, endpoint=endpoint, ca=ca)
