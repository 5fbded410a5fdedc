// Package anatomy says where the time of a volume operation goes, from a user's request to a running pod. It joins three
// records: the audit log of the API server, the driver's log of its RPCs, and the logs of Cinder and Nova.
//
// A flow is a chain of moments. The time between two of them belongs to the layer that everything waits for, so the parts add up to the whole.
package anatomy

import (
	"fmt"
	"time"
)

// Layer is who works, or is waited for, in a part of the time.
type Layer string

// The layers, in the order of the chart.
const (
	Cloud       Layer = "cloud"              // Cinder and Nova, from the driver's RPC to the end of their work
	Driver      Layer = "driver"             // from the end of the cloud's work to the driver's answer
	NodeDriver  Layer = "driver on the node" // staging, publishing and their reversals, with mkfs and mount
	Sidecars    Layer = "sidecars"           // external-provisioner and external-attacher
	Controllers Layer = "controller manager" // binding of claims, attach-detach controller
	Scheduler   Layer = "scheduler"
	KubeletWait Layer = "kubelet waits" // its retries until it sees what others have done
	Kubelet     Layer = "kubelet"       // start and end of containers, and its work between RPCs
)

// Layers are all of them, in the order of the chart.
var Layers = []Layer{Cloud, Driver, NodeDriver, Sidecars, Controllers, Scheduler, KubeletWait, Kubelet}

// Moment ends a part of a flow.
type Moment struct {
	At    time.Time
	Layer Layer
	Step  string // what has happened, for a reader: "volume created"
}

// Part is the time that one step took.
type Part struct {
	Layer   Layer
	Step    string
	Seconds float64
}

// Parts cuts the time from start on at the moments. A moment that lies before the one before it takes no time: it was not waited for.
// A moment without a time is an error, since the logs lack it and the part would go to another layer.
func Parts(start time.Time, moments []Moment) ([]Part, error) {
	var parts []Part
	for _, m := range moments {
		if m.At.IsZero() {
			return nil, fmt.Errorf("no log has the moment %q", m.Step)
		}
		took := max(0, m.At.Sub(start))
		parts = append(parts, Part{m.Layer, m.Step, took.Seconds()})
		start = start.Add(took)
	}
	return parts, nil
}

// Run is one flow of one pod.
type Run struct {
	Flow   string
	Driver string // and how kubelet is set up, if not by default
	Round  int    // flows with the same round ran one after the other; the pods of a flow of many share it
	Parts  []Part
}

// Seconds is the time of the whole flow.
func (r Run) Seconds() (sum float64) {
	for _, p := range r.Parts {
		sum += p.Seconds
	}
	return sum
}

// Measurement is what a page shows.
type Measurement struct {
	When string // date and place, for a reader
	Runs []Run
}
