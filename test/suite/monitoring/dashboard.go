package monitoring

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Dashboard is one Grafana dashboard.
type Dashboard struct {
	Name, Title string
	Panels      []Panel
}

// Panel is one graph. NS in an expression stands for the selected namespaces, and RATE for the range of a rate.
type Panel struct {
	Title, Meaning string
	Unit           string // as Grafana names it
	Queries        []Query
}

// Query is one PromQL expression, with the text that names its series in the legend.
type Query struct{ Expr, Legend string }

// expression is a query as Grafana stores it, with Grafana's variables.
func (q Query) expression() string {
	return strings.NewReplacer("NS", `namespace=~"$namespace"`, "RATE", "$__rate_interval").Replace(q.Expr)
}

type object = map[string]any

// columns is the number of panels in a row; Grafana's grid has 24 units.
const columns = 2

// JSON is the dashboard as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "$datasource"}
	panels := make([]object, len(d.Panels))
	for i, p := range d.Panels {
		targets := make([]object, len(p.Queries))
		for j, q := range p.Queries {
			targets[j] = object{"refId": string(rune('A' + j)), "expr": q.expression(), "legendFormat": q.Legend}
		}
		panels[i] = object{
			"id": i + 1, "type": "timeseries", "title": p.Title, "description": p.Meaning, "datasource": source,
			"gridPos":     object{"h": 8, "w": 24 / columns, "x": i % columns * 24 / columns, "y": i / columns * 8},
			"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": []any{}},
			"targets":     targets,
		}
	}
	const namespaces = "label_values(cinder_csi_build_info, namespace)"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": "cinder-csi-" + d.Name, "title": d.Title, "tags": []string{"cinder-csi"}, "schemaVersion": 39, "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "1m", "panels": panels,
		"templating": object{"list": []object{
			{"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus"},
			{
				"name": "namespace", "type": "query", "label": "Namespace", "datasource": source, "definition": namespaces,
				"query": object{"query": namespaces, "refId": "namespace"}, "refresh": 2, "sort": 1,
				"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
			},
		}},
	})
	return out.Bytes(), err
}
