# Weft with PHP, the command line and the examples. The extension comes from a binary archive in var/release, which `make release` builds or
# a release has:
#
#     docker build --tag weft .
#     docker run --rm --publish 8080:8080 weft                                            the shop; its data is in the volume /var/lib/weft
#     docker run --rm weft php examples/customers/app.php --commands=10000                the example of `make demo`
#
# `make image` builds the same without a daemon.
ARG BASE=debian:13-slim
FROM ${BASE}
ARG PHP=8.4

RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends php${PHP}-cli php${PHP}-mbstring \
        php-psr-log php-psr-container php-symfony-console php-symfony-validator php-dragonmantank-cron-expression \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 990 --home-dir /var/lib/weft --create-home weft

# The directory may have archives of other versions and processors: Cargo.toml says which version this is.
COPY Cargo.toml var/release/weft-*-php${PHP}-nts-linux-*-gnu.tgz /tmp/
RUN mkdir /opt/weft \
    && version=$(sed -n 's/^version = "\(.*\)"/\1/p' /tmp/Cargo.toml) \
    && tar -xzf "/tmp/weft-$version-php${PHP}-nts-linux-$(uname -m)-gnu.tgz" --strip-components=1 -C /opt/weft \
    && /opt/weft/install \
    && ln -s /opt/weft/bin/weft /usr/local/bin/weft \
    && rm /tmp/weft-*.tgz /tmp/Cargo.toml
COPY examples /opt/weft/examples

WORKDIR /opt/weft
USER weft
VOLUME /var/lib/weft
ENV LISTEN=0.0.0.0:8080 \
    DATABASE_URL=sqlite:///var/lib/weft/shop.sqlite \
    BROKER_URL=sqlite:///var/lib/weft/shop.sqlite \
    CUSTOMERS_FILE=/var/lib/weft/customers.sqlite
EXPOSE 8080 9464
HEALTHCHECK --interval=10s --timeout=3s CMD ["php", "-n", "-r", "exit(@file_get_contents('http://127.0.0.1:9464/ready') === false ? 1 : 0);"]
STOPSIGNAL SIGTERM
CMD ["weft", "run", "examples/shop/app.php", "--workers=auto", "--metrics=0.0.0.0:9464", "--drain-timeout=8", "--log=json"]
