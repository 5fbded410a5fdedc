# shellcheck shell=bash
# Keystone, Nova and Cinder behind TLS, as clouds are: a proxy ends TLS for the public endpoints, with a private CA. The services
# themselves and the internal endpoints stay as they are, so that TLS can be switched while the bed runs.

TLS=$STATE/tls

# openssl writes a CA and a certificate of it for the address of the APIs.
make_certificates() {
    [ ! -s "$TLS/server.pem" ] || return 0
    say "making a private CA"
    mkdir -p "$TLS"
    (
        umask 077
        cd "$TLS"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
            -subj "/CN=CA of the bed" -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$BED_ADDRESS" -keyout server.key -out server.csr
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out server.crt \
            -extfile <(echo "subjectAltName = IP:$BED_ADDRESS")
        cat server.crt server.key > server.pem.new
        mv server.pem.new server.pem # last: with it the others are complete
    ) 2>> "$LOG/tls.log" || die "no certificates, see $LOG/tls.log"
}

# The services learn from the header that a client speaks https, or the links in their answers would say http.
tls_proxy_conf() {
    cat <<EOT
global
    maxconn 4000
defaults
    mode http
    timeout connect 10s
    timeout client $BED_GATEWAY_TIMEOUT
    timeout server $BED_GATEWAY_TIMEOUT
    timeout http-keep-alive 60s
EOT
    local name port
    for name in keystone nova cinder; do
        port=${name^^}_PORT
        cat <<EOT
frontend $name
    bind $BED_ADDRESS:$((${!port} + TLS_OFFSET)) ssl crt $TLS/server.pem ssl-min-ver TLSv1.2
    http-request set-header X-Forwarded-Proto https
$(gateway_rate)
    default_backend $name
backend $name
    server bed $BED_ADDRESS:${!port}
EOT
    done
}

# Clouds put a limit before their APIs: more requests a second from one address get 429.
gateway_rate() {
    [ "$BED_GATEWAY_RATE" = 0 ] || cat <<EOT
    stick-table type ip size 1k expire 10s store http_req_rate(1s)
    http-request track-sc0 src
    http-request return status 429 hdr Retry-After 1 if { sc_http_req_rate(0) gt $BED_GATEWAY_RATE }
EOT
}

# -W: SIGUSR2 makes it read the certificate again.
start_tls_proxy() {
    make_certificates
    mkdir -p "$ETC/tls"
    tls_proxy_conf > "$ETC/tls/haproxy.cfg"
    start tls-proxy haproxy -W -f "$ETC/tls/haproxy.cfg"
    wait_for 60 tls-proxy port_open "$BED_ADDRESS" "$((KEYSTONE_PORT + TLS_OFFSET))"
}

stop_tls_proxy() {
    local pids
    mapfile -t pids < <(pid_of tls-proxy)
    signal TERM "${pids[@]}"
    wait_gone 100 "${pids[@]}" || signal KILL "${pids[@]}"
    rm -f "$RUN/tls-proxy.pid"
}
