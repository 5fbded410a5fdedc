package verify

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/chartutil"
)

// mostRenderings are how many renderings of the chart are kept: the bases of all planes, and what two bundles at a time have.
const mostRenderings = 8

// rendered are the last renderings of the chart. A bundle is made from that of its values, and compared with that of its values.yaml: the same values, or
// the bundle is wrong. The chart reads nothing else, so the same values give the same texts. Nobody changes the maps.
var rendered renderings

type renderings struct {
	mu   sync.Mutex
	kept []rendering // the last one used is last
}

type rendering struct {
	values [sha256.Size]byte
	files  map[string]string
}

// of is the rendering of values that have been completed by the chart's defaults.
func (r *renderings) of(values any, render func() (map[string]string, error)) (map[string]string, error) {
	key := hashOf(values)
	if files, there := r.get(key); there {
		return files, nil
	}
	files, err := render()
	if err == nil {
		r.put(rendering{key, files})
	}
	return files, err
}

func (r *renderings) get(key [sha256.Size]byte) (map[string]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.kept, func(k rendering) bool { return k.values == key })
	if at < 0 {
		return nil, false
	}
	found := r.kept[at]
	r.kept = append(slices.Delete(r.kept, at, at+1), found)
	return found.files, true
}

func (r *renderings) put(one rendering) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept = append(r.kept, one); len(r.kept) > mostRenderings {
		r.kept = slices.Delete(r.kept, 0, 1)
	}
}

func hashOf(values any) [sha256.Size]byte {
	hash := sha256.New()
	writeValue(hash, values)
	return [sha256.Size]byte(hash.Sum(nil))
}

// writeValue writes values with their Go types, which a template can distinguish.
func writeValue(to io.Writer, v any) {
	switch v := v.(type) {
	case chartutil.Values:
		writeValue(to, v.AsMap())
	case map[string]any:
		fmt.Fprintf(to, "{%d ", len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(to, "%q:", key)
			writeValue(to, v[key])
		}
	case []any:
		fmt.Fprintf(to, "[%d ", len(v))
		for _, e := range v {
			writeValue(to, e)
		}
	default:
		fmt.Fprintf(to, "%T %#v;", v, v)
	}
}
