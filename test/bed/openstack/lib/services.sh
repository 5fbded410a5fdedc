# shellcheck shell=bash
# How each daemon is started. The message queue and Keystone first: the others
# ask them for a connection and a token at once.

PYLIB=$HERE/pylib

start_rabbitmq() {
    export ERL_EPMD_PORT=$EPMD_PORT ERL_EPMD_ADDRESS=127.0.0.1
    start epmd epmd -address 127.0.0.1 -port "$EPMD_PORT"
    wait_for 60 epmd port_open 127.0.0.1 "$EPMD_PORT"
    start rabbitmq env HOME="$STATE/rabbit" \
        RABBITMQ_NODENAME=openstackbed@localhost \
        RABBITMQ_HOME=/usr/lib/rabbitmq \
        RABBITMQ_CONFIG_FILE="$ETC/rabbit/rabbitmq.conf" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$ETC/rabbit/none.config" \
        RABBITMQ_CONF_ENV_FILE="$ETC/rabbit/none-env.conf" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$ETC/rabbit/enabled_plugins" \
        RABBITMQ_MNESIA_BASE="$STATE/rabbit/mnesia" \
        RABBITMQ_LOG_BASE="$LOG/rabbit" \
        RABBITMQ_PID_FILE="$STATE/rabbit/server.pid" \
        RABBITMQ_DIST_PORT=$((RABBIT_PORT + 20000)) \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none" \
        /usr/lib/rabbitmq/bin/rabbitmq-server
}

start_wsgi() { # NAME PORT PROCESSES FILE [VARIABLE=VALUE...]
    local name=$1 port=$2 processes=$3 file=$4
    shift 4
    start "$name" env "$@" uwsgi --plugin python3 --master --die-on-term \
        --lazy-apps --enable-threads --buffer-size 65535 --no-orphans --need-app \
        --rem-header Content-Length --add-header Connection:close \
        --disable-logging --processes "$processes" --threads 8 \
        --http-socket "$BED_ADDRESS:$port" --wsgi-file "$file"
}

# Newer releases have a module in place of the script.
wsgi_file() { # SCRIPT MODULE
    if [ -e "/usr/bin/$1" ]; then echo "/usr/bin/$1"; else echo "/usr/lib/python3/dist-packages/$2"; fi
}

start_keystone() {
    start_wsgi keystone "$KEYSTONE_PORT" 2 "$(wsgi_file keystone-wsgi-public keystone/wsgi/api.py)" \
        OS_KEYSTONE_CONFIG_DIR="$ETC/keystone" OS_KEYSTONE_CONFIG_FILES=keystone.conf
}

start_apis() {
    start_wsgi placement "$PLACEMENT_PORT" 1 "$(wsgi_file placement-api placement/wsgi/api.py)" \
        OS_PLACEMENT_CONFIG_DIR="$ETC/placement"
    start neutron-stub python3 "$PYLIB/neutron_stub.py" "$BED_ADDRESS" "$NEUTRON_PORT"
    start metadata-proxy python3 "$PYLIB/metadata_proxy.py" "$BED"
    start_glance_api
    start_barbican
    start cinder-api cinder-api --config-file "$ETC/cinder/cinder.conf"
    start_nova_api
}

# The program glance-api of newer releases says that it serves no more.
start_glance_api() {
    if ! grep -qs "Standalone glance-api is no longer supported" /usr/lib/python3/dist-packages/glance/cmd/api.py; then
        start glance-api glance-api --config-file "$ETC/glance/glance-api.conf"
        return
    fi
    start_wsgi glance-api "$GLANCE_PORT" 1 /usr/lib/python3/dist-packages/glance/wsgi/api.py OS_GLANCE_CONFIG_DIR="$ETC/glance"
}

# Where Nova has no program nova-api, a web server runs each of its two APIs.
start_nova_api() {
    if [ -x /usr/bin/nova-api ]; then
        start nova-api nova-api --config-file "$ETC/nova/nova.conf"
        return
    fi
    ln -sf /etc/nova/api-paste.ini "$ETC/nova/api-paste.ini"
    start_wsgi nova-api "$NOVA_PORT" 1 /usr/lib/python3/dist-packages/nova/wsgi/osapi_compute.py OS_NOVA_CONFIG_DIR="$ETC/nova"
    start_wsgi nova-metadata "$METADATA_PORT" 1 /usr/lib/python3/dist-packages/nova/wsgi/metadata.py OS_NOVA_CONFIG_DIR="$ETC/nova"
}

start_workers() {
    local name zone
    for name in nova-conductor nova-scheduler; do
        start "$name" "$name" --config-file "$ETC/nova/nova.conf"
    done
    for name in cinder-scheduler cinder-volume cinder-backup; do
        start "$name" env PYTHONPATH="$PYLIB" "$name" --config-file "$ETC/cinder/cinder.conf"
    done
    for zone in $NOVA_AZS; do
        if [ "$BED_ATTACH" = libvirt ]; then
            start "nova-compute-$zone" nova-compute --config-file "$ETC/nova/nova.conf" --config-file "$ETC/nova/compute-$zone.conf"
            continue
        fi
        start "nova-compute-$zone" env PYTHONPATH="$PYLIB" \
            BED_SERVERS="$BED/servers" BED_ATTACH="$BED_ATTACH" BED_IMAGES="$RUN/images" BED_CEPH_CONF="$ETC/ceph/ceph.conf" \
            python3 "$PYLIB/nova_compute.py" --config-file "$ETC/nova/nova.conf" \
            --config-file "$ETC/nova/compute-$zone.conf"
    done
}

wait_for_apis() {
    wait_for 300 placement port_open "$BED_ADDRESS" "$PLACEMENT_PORT"
    wait_for 300 glance-api port_open "$BED_ADDRESS" "$GLANCE_PORT"
    wait_for 300 cinder-api port_open "$BED_ADDRESS" "$CINDER_PORT"
    wait_for 300 nova-api port_open "$BED_ADDRESS" "$NOVA_PORT"
    ! has_barbican || wait_for 300 barbican-api port_open "$BED_ADDRESS" "$BARBICAN_PORT"
}
