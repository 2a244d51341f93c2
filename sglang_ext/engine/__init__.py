"""The only folder that touches SGLang's internals."""
