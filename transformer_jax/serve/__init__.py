"""A trained translation model behind HTTP: LibreTranslate's protocol, and a page to try the model.

Starlette and uvicorn are the server: both are maintained by one active team, need four small packages between them, and
uvicorn ends on SIGTERM without losing a request.
"""
