// Package monitoring holds the Grafana dashboards, and tests them and the alerts of the chart.
//
// The dashboards are a table in Go, so that a panel is one line. The files of the chart come from it. The tests with
// the build tag monitoring need promtool and Prometheus; `make test-monitoring` runs them. With -update they also write what the panels showed,
// and tools/pictures draws it.
package monitoring
