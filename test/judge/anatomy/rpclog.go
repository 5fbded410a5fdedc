package anatomy

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// RPC is a call of the driver by a sidecar or kubelet.
type RPC struct {
	Method     string // "CreateVolume"
	Object     string // the volume's ID; for CreateVolume its name
	Begin, End time.Time
	Failed     bool
}

// ReadRPCs reads the log of either driver, as `kubectl logs --prefix --timestamps` gives it. This driver writes a line at the end of an RPC. Upstream's
// plugin writes lines at the beginning and at the end (--v=5).
func ReadRPCs(r io.Reader) ([]RPC, error) {
	var all []RPC
	open := map[string]*RPC{} // upstream's, by pod and number
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		pod, at, text, ok := logLine(lines.Text())
		if !ok {
			continue
		}
		if m := ownLine.FindStringSubmatch(text); m != nil {
			rpc, err := own(at, m[1])
			if err != nil {
				return nil, err
			}
			all = append(all, rpc)
		} else if m := upstreamLine.FindStringSubmatch(text); m != nil {
			if rpc, ended := upstream(open, pod+" "+m[1], at, m[2], m[3]); ended {
				all = append(all, rpc)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b RPC) int { return a.Begin.Compare(b.Begin) })
	return all, lines.Err()
}

var (
	prefixed     = regexp.MustCompile(`^\[(\S+)\] (\S+) (.*)$`)
	ownLine      = regexp.MustCompile(`^time=\S+ level=\S+ msg=rpc (.*)$`)
	upstreamLine = regexp.MustCompile(`\[ID:(\d+)\] GRPC (call|request|response|error): (.*)$`)
	volumeID     = regexp.MustCompile(`"volume_id":"([^"]+)"`)
	volumeName   = regexp.MustCompile(`"name":"([^"]+)"`)
)

// logLine splits a line: the pod and container, the time at which the container runtime got it, and the text.
func logLine(line string) (pod string, at time.Time, text string, ok bool) {
	m := prefixed.FindStringSubmatch(line)
	if m == nil {
		return "", time.Time{}, "", false
	}
	at, err := time.Parse(time.RFC3339Nano, m[2])
	return m[1], at, m[3], err == nil
}

// own reads the attributes that driver/rpc.Log writes.
func own(at time.Time, attributes string) (RPC, error) {
	fields := map[string]string{}
	for _, field := range strings.Fields(attributes) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	took, err := time.ParseDuration(fields["duration"])
	if err != nil || fields["method"] == "" {
		return RPC{}, fmt.Errorf("the log line of an RPC has no method or duration: %s", attributes)
	}
	rpc := RPC{fields["method"], fields["volume"], at.Add(-took), at, fields["code"] != "OK"}
	if rpc.Method == "CreateVolume" {
		rpc.Object = fields["name"]
	}
	return rpc, nil
}

func upstream(open map[string]*RPC, id string, at time.Time, what, text string) (RPC, bool) {
	rpc := open[id]
	switch {
	case what == "call":
		open[id] = &RPC{Method: text[strings.LastIndex(text, "/")+1:], Begin: at}
	case rpc == nil: // it began before the log
	case what == "request":
		pattern := volumeID
		if rpc.Method == "CreateVolume" {
			pattern = volumeName
		}
		if m := pattern.FindStringSubmatch(text); m != nil {
			rpc.Object = m[1]
		}
	default:
		delete(open, id)
		rpc.End, rpc.Failed = at, what == "error"
		return *rpc, true
	}
	return RPC{}, false
}
