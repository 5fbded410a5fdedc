package anatomy

import (
	"bufio"
	"io"
	"regexp"
	"time"
)

// Work is when the cloud had done something to a volume: "create", "attach" or "detach".
type Work struct {
	Step, Volume string
	Done         time.Time
}

// oslo is a line of oslo.log: its time, the request ID of the calling service or "None", its own request ID, and the text.
var oslo = regexp.MustCompile(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \d+ \w+ \S+ \[(\S+) (req-\S+)[^\]]*\] (.*)$`)

type osloLine struct {
	at                    time.Time
	caller, request, text string
}

func readOslo(r io.Reader) ([]osloLine, error) {
	var all []osloLine
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m := oslo.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		at, err := time.ParseInLocation("2006-01-02 15:04:05.000", m[1], time.Local)
		if err != nil {
			return nil, err
		}
		all = append(all, osloLine{at, m[2], m[3], m[4]})
	}
	return all, lines.Err()
}

var (
	createdAs = regexp.MustCompile(`[Vv]olume ([0-9a-f-]{36}): being created as`)
	atVolume  = regexp.MustCompile(`(Attaching|Detaching) volume ([0-9a-f-]{36})`)
	answered  = regexp.MustCompile(`"(GET|POST|PUT|DELETE) .*status: \d+`)
)

// ReadWork finds the end of the cloud's work. A create ends with the last line of cinder-volume about its request. An attach or detach ends with
// Cinder's answer to the last call that nova-compute made for it.
func ReadWork(cinderVolume, cinderAPI io.Reader, novaCompute ...io.Reader) ([]Work, error) {
	var all []Work
	lines, err := readOslo(cinderVolume)
	if err != nil {
		return nil, err
	}
	creates := map[string]int{}
	for _, line := range lines {
		if m := createdAs.FindStringSubmatch(line.text); m != nil {
			creates[line.request] = len(all)
			all = append(all, Work{"create", m[1], line.at})
		} else if i, known := creates[line.request]; known {
			all[i].Done = line.at
		}
	}
	calls, err := readOslo(cinderAPI)
	if err != nil {
		return nil, err
	}
	last := map[string]time.Time{} // by the request of the caller
	for _, line := range calls {
		if answered.MatchString(line.text) {
			last[line.caller] = line.at
		}
	}
	for _, log := range novaCompute {
		lines, err := readOslo(log)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			if m := atVolume.FindStringSubmatch(line.text); m != nil && !last[line.request].IsZero() {
				step := map[string]string{"Attaching": "attach", "Detaching": "detach"}[m[1]]
				all = append(all, Work{step, m[2], last[line.request]})
			}
		}
	}
	return all, nil
}
