"""The one exception of this package."""


class EncodingError(Exception):
    """A prompt cannot be encoded: files are missing or broken, or the chat template does not allow it.

    The message says what, where and what to do.
    """
