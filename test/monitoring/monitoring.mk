# Alerts, dashboards and their cost, against Debian's Prometheus.

.PHONY: test-monitoring-tools test-monitoring cost

test-monitoring-tools: ## as root on Debian: install Prometheus and promtool, if they are missing
	@command -v promtool >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null; }

test-monitoring: build test-monitoring-tools ## each alert fires in its scenario and only there, each panel shows data of a real Prometheus; prints the tables
	go test -tags monitoring ./test/monitoring -count 1 -v -run 'Alert|Panel|Files|Metric' | grep -v -e '^=== ' -e '^ *--- PASS'

cost: build ## what metrics cost: time of a scrape with 1,000 volumes, memory of the node role, size of the driver (COST_BEFORE=COMMIT compares)
	go test -tags monitoring ./test/monitoring -count 1 -v -run Cost -before '$(COST_BEFORE)' | grep -v -e '^=== ' -e '^ *--- PASS'
