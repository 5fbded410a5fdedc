# shellcheck shell=bash
# MariaDB on a socket, and the services' schemas.
#
# Upgrading empty databases to today's schema is half of a first start, so a
# dump of them is kept between beds. It holds no directory, port or secret:
# cells are stored as templates of nova.conf, Keystone is bootstrapped after.

SOCKET=$RUN/mysqld.sock
DATABASES=(keystone placement glance nova_api nova nova_cell0 cinder)

start_mariadb() {
    if [ ! -d "$BED/mysql/mysql" ]; then
        say "MariaDB: new data directory"
        mariadb-install-db --no-defaults --user=root --datadir="$BED/mysql" \
            --auth-root-authentication-method=normal --skip-test-db \
            --skip-name-resolve > "$LOG/mariadb-install-db.log" 2>&1
    fi
    start mariadb mariadbd --no-defaults --user=root --datadir="$BED/mysql" \
        --socket="$SOCKET" --skip-networking --pid-file="$RUN/mysqld.pid" \
        --character-set-server=utf8 --collation-server=utf8_general_ci \
        --max-connections=600 --innodb-buffer-pool-size=256M \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 \
        --innodb-flush-method=nosync --performance-schema=OFF
}

sql() { mariadb --no-defaults -uroot -S "$SOCKET"; }

dump_file() { # changes when a package or this file does
    local key
    key=$({
        cat "${BASH_SOURCE[0]}"
        dpkg-query -W "${PACKAGES[@]}"
    } | sha256sum | cut -c1-16)
    echo "$BED_CACHE/$key.sql"
}

make_databases() {
    local dump
    wait_for 180 mariadb mariadb-admin --no-defaults -uroot -S "$SOCKET" ping
    [ ! -e "$STATE/databases-made" ] || return 0
    dump=$(dump_file)
    if [ -s "$dump" ]; then
        say "restoring the kept databases"
        sql < "$dump"
    else
        say "making the database schemas"
        make_schemas
        keep_dump "$dump"
    fi
    touch "$STATE/databases-made"
}

make_schemas() {
    local name nova keystone cinder
    ! has_barbican || DATABASES+=(barbican)
    for name in "${DATABASES[@]}"; do
        echo "CREATE DATABASE IF NOT EXISTS $name CHARACTER SET utf8;"
    done | sql
    nova_schema > "$LOG/schema-nova.log" 2>&1 &
    nova=$!
    keystone_schema > "$LOG/schema-keystone.log" 2>&1 &
    keystone=$!
    cinder_schema > "$LOG/schema-cinder.log" 2>&1 &
    cinder=$!
    wait "$nova" || die "no schema for nova, see $LOG/schema-nova.log"
    wait "$keystone" || die "no schema for keystone or placement, see $LOG/schema-keystone.log"
    wait "$cinder" || die "no schema for cinder, glance or barbican, see $LOG/schema-cinder.log"
}

nova_schema() {
    local manage=(nova-manage --config-file "$ETC/nova/nova.conf")
    local url='{scheme}://{username}@{hostname}/%s?{query}'
    # shellcheck disable=SC2059
    "${manage[@]}" api_db sync &&
        "${manage[@]}" cell_v2 map_cell0 \
            --database_connection "$(printf "$url" nova_cell0)" &&
        "${manage[@]}" db sync &&
        "${manage[@]}" cell_v2 create_cell --name cell1 \
            --database_connection "$(printf "$url" nova)" \
            --transport-url '{scheme}://{username}:{password}@{hostname}:{port}/'
}

keystone_schema() {
    keystone-manage --config-file "$ETC/keystone/keystone.conf" db_sync &&
        placement-manage --config-file "$ETC/placement/placement.conf" db sync
}

cinder_schema() {
    cinder-manage --config-file "$ETC/cinder/cinder.conf" db sync &&
        glance-manage --config-file "$ETC/glance/glance-api.conf" db_sync &&
        { ! has_barbican || barbican_schema; }
}

keep_dump() { # FILE
    mkdir -p "$BED_CACHE"
    rm -f "$BED_CACHE"/*.sql
    mariadb-dump --no-defaults -uroot -S "$SOCKET" --skip-lock-tables \
        --databases "${DATABASES[@]}" > "$1.new"
    mv "$1.new" "$1"
}

# Fernet keys are 32 random bytes: 0 is the next one, the highest signs.
make_keystone_keys() {
    local directory key
    for directory in "$STATE/keystone-fernet" "$STATE/keystone-credential"; do
        [ ! -e "$directory/1" ] || continue
        mkdir -p "$directory"
        chmod 700 "$directory"
        for key in 0 1; do
            (umask 077 && head -c 32 /dev/urandom | base64 | tr '+/' '-_' > "$directory/$key")
        done
    done
}

bootstrap_keystone() {
    [ ! -e "$STATE/keystone-bootstrapped" ] || return 0
    OS_BOOTSTRAP_PASSWORD=$(secret admin) \
        keystone-manage --config-file "$ETC/keystone/keystone.conf" bootstrap \
        --bootstrap-region-id RegionOne --bootstrap-public-url "$(identity_url)/" \
        --bootstrap-internal-url "$(identity_url)/" --bootstrap-admin-url "$(identity_url)/" \
        > "$LOG/bootstrap.log" 2>&1 || die "no bootstrap of Keystone, see $LOG/bootstrap.log"
    touch "$STATE/keystone-bootstrapped"
}
