# Colloquy in a container: its wheel in a slim image. Artifacts and weights are volumes (compose.yaml).
FROM python:3.12-slim AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --quiet --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
RUN pip install --quiet --no-cache-dir --constraint /tmp/constraints.txt /wheels/*.whl
RUN useradd --create-home colloquy \
    && install --directory --owner colloquy /work /models
USER colloquy
WORKDIR /work
ENV COLLOQUY_MODELS_DIR=/models
ENTRYPOINT ["colloquy"]
CMD ["tour"]
