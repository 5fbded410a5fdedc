# shellcheck shell=bash
# Barbican keeps the keys of encrypted volumes, in its database, by its simple crypto plugin. It runs where servers are guests:
# QEMU decrypts, and nothing else of the bed does.

# shellcheck disable=SC2034 # used by up.sh
BARBICAN_PACKAGES=(barbican-api barbican-common)

has_barbican() { [ "$BED_ATTACH" = libvirt ]; }

# The policies are the defaults of the release. They ask for the role "creator", so seed.py gives it to the members.
barbican_conf() {
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
host_href = http://$BED_ADDRESS:$BARBICAN_PORT
transport_url = $(message_url)
[secretstore]
enabled_secretstore_plugins = store_crypto
[crypto]
enabled_crypto_plugins = simple_crypto
[simple_crypto_plugin]
kek = $(secret barbican-kek | sha256sum | head -c 32 | base64)
$(database database barbican)
$(common barbican key-manager)
EOT
}

# The part of Cinder's and of Nova's configuration. They ask Barbican with the token of the user.
key_manager() {
    cat <<EOT
[key_manager]
backend = barbican
[barbican]
auth_endpoint = $(identity_url)
barbican_endpoint_type = internal
barbican_region_name = RegionOne
EOT
}

write_barbican_config() {
    has_barbican || return 0
    mkdir -p "$ETC/barbican"
    barbican_conf > "$ETC/barbican/barbican.conf"
    # Barbican knows this place alone. It is that of the root directory.
    ln -sfn "$ETC/barbican/barbican.conf" /etc/barbican/barbican.conf
}

barbican_schema() { barbican-db-manage upgrade; }

start_barbican() {
    has_barbican || return 0
    start_wsgi barbican-api "$BARBICAN_PORT" 1 /usr/bin/barbican-wsgi-api
}
