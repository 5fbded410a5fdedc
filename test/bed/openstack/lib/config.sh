# shellcheck shell=bash
# The configuration files of every service. Each function prints one file or
# a part of one. OpenStack's defaults stand where nothing is said.

identity_url() { echo "http://$BED_ADDRESS:$KEYSTONE_PORT/v3"; }
image_url() { echo "http://$BED_ADDRESS:$GLANCE_PORT"; }
database_url() { echo "mysql+pymysql://root@localhost/$1?unix_socket=$SOCKET&charset=utf8"; }
message_url() { echo "rabbit://bed:$(secret rabbitmq)@127.0.0.1:$RABBIT_PORT/"; }

database() { # SECTION NAME
    cat <<EOT
[$1]
connection = $(database_url "$2")
max_pool_size = 20
max_overflow = 40
EOT
}

credentials() { # SERVICE
    cat <<EOT
auth_type = password
auth_url = $(identity_url)
project_name = service
project_domain_name = Default
username = $1
user_domain_name = Default
password = $(secret "$1")
region_name = RegionOne
EOT
}

# The links in answers have the scheme and the host that the client has used: see tls.sh.
behind_proxy() {
    cat <<EOT
[oslo_middleware]
enable_proxy_headers_parsing = true
EOT
}

# service_type is what the access rules of application credentials name.
common() { # SERVICE TYPE
    cat <<EOT
$(behind_proxy)
[oslo_concurrency]
lock_path = $RUN/lock-$1
[oslo_policy]
policy_file = $ETC/$1/policy.yaml
policy_dirs = $ETC/$1/policy.d
[oslo_messaging_notifications]
driver = noop
[keystone_authtoken]
www_authenticate_uri = $(identity_url)
service_type = $2
service_token_roles = service
service_token_roles_required = true
$(credentials "$1")
EOT
}

rabbitmq_conf() {
    cat <<EOT
listeners.tcp.1 = 127.0.0.1:$RABBIT_PORT
default_user = bed
default_pass = $(secret rabbitmq)
log.file.level = warning
vm_memory_high_watermark.absolute = 1GiB
disk_free_limit.absolute = 50MB
EOT
}

keystone_conf() {
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
$(behind_proxy)
[token]
provider = fernet
expiration = 86400
[fernet_tokens]
key_repository = $STATE/keystone-fernet
[fernet_receipts]
key_repository = $STATE/keystone-fernet
[credential]
key_repository = $STATE/keystone-credential
[oslo_policy]
policy_file = $ETC/keystone/policy.yaml
policy_dirs = $ETC/keystone/policy.d
[identity]
password_hash_rounds = 4
$(database database keystone)
EOT
}

placement_conf() {
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
[api]
auth_strategy = keystone
$(database placement_database placement)
$(common placement placement)
EOT
}

glance_conf() {
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
bind_host = $BED_ADDRESS
bind_port = $GLANCE_PORT
workers = 1
enabled_backends = file:file
node_staging_uri = file://$STATE/glance/staging
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $STATE/glance/images
[os_glance_staging_store]
filesystem_store_datadir = $STATE/glance/staging
[os_glance_tasks_store]
filesystem_store_datadir = $STATE/glance/tasks
[paste_deploy]
config_file = /etc/glance/glance-api-paste.ini
flavor = keystone
$(database database glance)
$(common glance image)
EOT
}

nova_conf() {
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
my_ip = 127.0.0.1
state_path = $STATE/nova
transport_url = $(message_url)
rpc_response_timeout = 60
enabled_apis = osapi_compute,metadata
osapi_compute_listen = $BED_ADDRESS
osapi_compute_listen_port = $NOVA_PORT
osapi_compute_workers = 1
metadata_listen = $BED_ADDRESS
metadata_listen_port = $METADATA_PORT
metadata_workers = 1
default_schedule_zone =
allow_resize_to_same_host = true
resume_guests_state_on_host_boot = true
heal_instance_info_cache_interval = -1
report_interval = 10
service_down_time = 60
reserved_host_memory_mb = 0
update_resources_interval = 30
instance_name_template = instance-%08x
[api]
auth_strategy = keystone
max_limit = $BED_PAGE_SIZE
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
$(database api_database nova_api)
$(database database nova)
[glance]
$(credentials nova)
api_servers = $(image_url)
[cinder]
$(credentials nova)
os_region_name = RegionOne
catalog_info = volumev3::internalURL
cross_az_attach = $NOVA_CROSS_AZ_ATTACH
[neutron]
$(credentials nova)
service_metadata_proxy = true
metadata_proxy_shared_secret = $(secret metadata)
[placement]
$(credentials nova)
[service_user]
send_service_user_token = true
$(credentials nova)
[compute]
max_disk_devices_to_attach = $NOVA_MAX_VOLUMES
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 60
[conductor]
workers = 1
[vnc]
enabled = false
[spice]
enabled = false
$(! has_barbican || key_manager)
$(common nova compute)
EOT
}

compute_conf() { # ZONE
    cat <<EOT
[DEFAULT]
host = compute-$1
state_path = $STATE/nova-$1
EOT
    if [ "$BED_ATTACH" = libvirt ]; then libvirt_compute_conf "$1"; else echo "compute_driver = bedvirt.BedDriver"; fi
}

# Nova's defaults stand for the time that a guest has to release a disk. A machine of type q35 takes a disk for each free port.
libvirt_compute_conf() { # ZONE
    cat <<EOT
compute_driver = libvirt.LibvirtDriver
force_config_drive = true
[libvirt]
virt_type = qemu
connection_uri = $(libvirt_uri "$1")
num_pcie_ports = 16
EOT
}

cinder_conf() {
    local first=${CINDER_AZS%% *}
    cat <<EOT
[DEFAULT]
debug = $BED_DEBUG
my_ip = 127.0.0.1
host = lab
state_path = $STATE/cinder
transport_url = $(message_url)
rpc_response_timeout = 60
auth_strategy = keystone
api_paste_config = /etc/cinder/api-paste.ini
resource_query_filters_file = $BED_FILTERS
osapi_volume_listen = $BED_ADDRESS
osapi_volume_listen_port = $CINDER_PORT
osapi_volume_workers = $BED_API_WORKERS
osapi_max_limit = $BED_PAGE_SIZE
enabled_backends = $(cinder_backends | sed -n 's/^\[\(.*\)\]$/\1/p' | paste -sd,)
default_volume_type = standard
storage_availability_zone = $first
default_availability_zone = $first
allow_availability_zone_fallback = $CINDER_AZ_FALLBACK
report_interval = 10
service_down_time = 60
backend_stats_polling_interval = 10
glance_api_servers = $(image_url)
backup_workers = 1
$(cinder_backups)
volume_clear = none
image_conversion_dir = $STATE/cinder/conversion
verify_glance_signatures = disabled
[backend_defaults]
backend_stats_polling_interval = 10
[nova]
$(credentials cinder)
interface = internal
[service_user]
send_service_user_token = true
$(credentials cinder)
$(if has_barbican; then key_manager; else fixed_key; fi)
$(database database cinder)
$(common cinder volumev3)
EOT
    cinder_backends
}

fixed_key() {
    cat <<EOT
[key_manager]
backend = cinder.keymgr.conf_key_mgr.ConfKeyManager
fixed_key = 00000000000000000000000000000000
EOT
}

cinder_backups() {
    case $BED_BACKEND in
        ceph)
            echo "backup_driver = cinder.backup.drivers.ceph.CephBackupDriver"
            echo "backup_ceph_conf = $ETC/ceph/ceph.conf"
            echo "backup_ceph_user = admin"
            ;;
        *)
            echo "backup_driver = cinder.backup.drivers.posix.PosixBackupDriver"
            echo "backup_posix_path = $BED_BACKUPS"
            echo "backup_file_size = 52428800"
            echo "backup_compression_algorithm = zstd"
            ;;
    esac
}

cinder_backends() {
    local zone type
    for zone in $CINDER_AZS; do
        case $BED_BACKEND in
            ceph)
                for type in standard fast; do ceph_cinder_backend "$zone" "$type"; done
                file_cinder_backend "$zone" "backend-$zone-files" files
                ;;
            *) file_cinder_backend "$zone" "backend-$zone" standard,fast ;;
        esac
    done
}

file_cinder_backend() { # ZONE NAME POOLS
    cat <<EOT
[$2]
volume_driver = bed_cinder.filevol.FileVolumeDriver
volume_backend_name = lab
backend_availability_zone = $1
bed_volumes_dir = $STATE/volumes/$1
bed_faults_dir = $STATE/faults
bed_pools = $3
EOT
    # A volume of a type that names no backend goes to Ceph, which has more room.
    [ "$BED_BACKEND" = file ] || echo "bed_pool_size_gb = 10"
}

# What the Python parts and tests need to know.
bed_json() {
    cat <<EOT
{"address": "$BED_ADDRESS", "keystone": $KEYSTONE_PORT, "nova": $NOVA_PORT, "metadata": $METADATA_PORT,
 "cinder": $CINDER_PORT, "placement": $PLACEMENT_PORT, "glance": $GLANCE_PORT,
 "neutron": $NEUTRON_PORT, "barbican": $BARBICAN_PORT, "metadata_proxy": $METADATA_PROXY_PORT,
 "nova_azs": "$NOVA_AZS", "cinder_azs": "$CINDER_AZS",
 "tls": $BED_TLS, "tls_offset": $TLS_OFFSET, "ca": "$TLS/ca.pem",
 "nodes_per_az": $BED_NODES_PER_AZ, "max_disks": $NOVA_MAX_VOLUMES,
 "cross_az_attach": $NOVA_CROSS_AZ_ATTACH, "az_fallback": $CINDER_AZ_FALLBACK,
 "cloud": "$BED_CLOUD", "debian": "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)",
 "backend": "$BED_BACKEND", "compute": "$BED_ATTACH",
 "packages": {$(dpkg-query -W -f '"${Package}": "${Version}"\n' keystone cinder-api nova-api | paste -sd,)}}
EOT
}

write_configs() {
    local zone
    mkdir -p "$ETC"/{keystone,placement,nova,cinder,glance,rabbit}
    bed_json > "$BED/bed.json"
    rabbitmq_conf > "$ETC/rabbit/rabbitmq.conf"
    echo '[].' > "$ETC/rabbit/enabled_plugins"
    keystone_conf > "$ETC/keystone/keystone.conf"
    placement_conf > "$ETC/placement/placement.conf"
    glance_conf > "$ETC/glance/glance-api.conf"
    nova_conf > "$ETC/nova/nova.conf"
    for zone in $NOVA_AZS; do compute_conf "$zone" > "$ETC/nova/compute-$zone.conf"; done
    cinder_conf > "$ETC/cinder/cinder.conf"
    write_barbican_config
}
