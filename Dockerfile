# Two images: `worker` (the last, so the default) as ECS runs it, which `webordinary aws image` builds, tags and pushes;
# `server` for `webordinary up` on a machine with containers, see compose.yaml.
# Agents beside the built-in one are the operator's choice: --build-arg EXTRAS=claude
# The digest names one image for all platforms. To take a newer one, change tag and digest in all three places:
# docker buildx imagetools inspect python:3.13-slim-trixie

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
ARG EXTRAS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements requirements
# Below /usr, as nothing else of the machine is seen in the jail.
RUN python -m venv /usr/local/lib/webordinary \
    && /usr/local/lib/webordinary/bin/pip install --no-deps --require-hashes \
        -r "requirements/worker${EXTRAS:+-$EXTRAS}.lock" -r requirements/build.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /usr/local/lib/webordinary/bin/pip install --no-deps --no-build-isolation .

# Debian 13 has Node 20, whose support ended in April 2026. Its npm fetches one that is maintained until April 2028, by
# the hashes in infra/node; a newer one: npm install --package-lock-only --ignore-scripts in that folder.
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS node
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends nodejs npm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /fetched
COPY infra/node/package.json infra/node/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund \
    && mkdir -p /node/bin /node/lib/node_modules \
    && cp node_modules/node-linux-*/bin/node /node/bin/node \
    && cp -R node_modules/npm /node/lib/node_modules/npm \
    && ln -s ../lib/node_modules/npm/bin/npm-cli.js /node/bin/npm \
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /node/bin/npx

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS runtime
# Debian's own versions: its security updates are worth more than a version that stands still.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates chromium fonts-dejavu-core git hugo libatomic1 libstdc++6 openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && useradd --uid 10001 --no-log-init --create-home --shell /usr/sbin/nologin webordinary \
    && install -d -o webordinary -g webordinary -m 0700 /work
COPY --from=build /usr/local/lib/webordinary /usr/local/lib/webordinary
COPY --from=node /node /usr/local
ENV PATH=/usr/local/lib/webordinary/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    WORKSPACE_PATH=/work
WORKDIR /work
USER 10001:10001
STOPSIGNAL SIGTERM

FROM runtime AS server
ENV WEBORDINARY_HOST=0.0.0.0 \
    WEBORDINARY_SITES_HOST=0.0.0.0 \
    WEBORDINARY_PORT=8080 \
    WEBORDINARY_PREVIEW_PORT=8081
EXPOSE 8080 8081 2525
VOLUME /work
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["webordinary", "status"]
CMD ["webordinary", "up", "--no-sample"]

FROM runtime AS worker
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 CMD ["webordinary", "worker", "health"]
CMD ["webordinary", "worker"]
