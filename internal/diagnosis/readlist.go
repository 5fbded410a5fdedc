package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// ListReadings are everything that ReadList found out about the volumes of a cluster.
type ListReadings struct {
	Now         time.Time
	Gaps        []Gap
	Drivers     []string
	Declared    []string // the CSIDrivers that have the label of this driver
	Volumes     []corev1.PersistentVolume
	Claims      map[string]corev1.PersistentVolumeClaim // by NAMESPACE/NAME; nil: they could not be read
	Pods        []corev1.Pod
	Attachments []storagev1.VolumeAttachment
	Nodes       map[string]*Node        // with the servers that each names
	Servers     map[string]string       // by node; not those in conflict
	Cinder      map[string]ListedVolume // by the ID in lower case
	CinderRead  bool                    // the whole list was read
}

// ListedVolume is a volume in a list of Cinder, or a snapshot or backup, which are attached to nothing.
type ListedVolume struct {
	CloudVolume
	Attachments []struct {
		Server string `json:"server_id"`
	} `json:"attachments"`
}

// attachedTo reports whether Cinder attaches the volume to one of the servers.
func (v ListedVolume) attachedTo(servers map[string]bool) bool {
	for _, a := range v.Attachments {
		if servers[a.Server] {
			return true
		}
	}
	return false
}

// ReadList collects the readings about all volumes of the driver, in few requests: each list once. The only error is that of a cluster whose
// PersistentVolumes cannot be read.
func ReadList(ctx context.Context, from Clients) (ListReadings, error) {
	f := ListReadings{Now: from.Now, Servers: map[string]string{}, Cinder: map[string]ListedVolume{}}
	r := &reader{Clients: from, readings: &Readings{}}
	var err error
	if f.Volumes, err = cluster.List[corev1.PersistentVolume](ctx, from.Cluster, "/api/v1/persistentvolumes"); err != nil {
		return f, err
	}
	f.Drivers = []string{cluster.UpstreamName}
	drivers := cluster.Selector{Labels: "app.kubernetes.io/name=cinder-csi"}
	for _, d := range selected[storagev1.CSIDriver](ctx, r, "the CSIDrivers", "/apis/storage.k8s.io/v1/csidrivers", drivers) {
		f.Declared = append(f.Declared, d.Name)
		if d.Name != cluster.UpstreamName { // a bundle on vanilla Kubernetes has that name
			f.Drivers = append(f.Drivers, d.Name)
		}
	}
	if claims, err := cluster.List[corev1.PersistentVolumeClaim](ctx, from.Cluster, "/api/v1/persistentvolumeclaims"); err == nil {
		f.Claims = map[string]corev1.PersistentVolumeClaim{}
		for _, c := range claims {
			f.Claims[c.Namespace+"/"+c.Name] = c
		}
	} else if !errors.Is(err, cluster.ErrNotFound) {
		r.gap("the claims", err)
	}
	f.Pods = selected[corev1.Pod](ctx, r, "the pods", "/api/v1/pods", cluster.Selector{})
	f.Attachments = selected[storagev1.VolumeAttachment](ctx, r, theAttachments, "/apis/storage.k8s.io/v1/volumeattachments", cluster.Selector{})
	f.readNodeServers(ctx, r)
	f.readCinder(ctx, r)
	f.Gaps = r.readings.Gaps
	return f, nil
}

func (f *ListReadings) readCinder(ctx context.Context, r *reader) {
	if r.Cloud == nil {
		r.readings.Gaps = append(r.readings.Gaps, r.NoCloud)
		return
	}
	all, err := cinderList(ctx, r, "volumes", "", func(v ListedVolume) string { return v.ID })
	if err != nil {
		r.readings.Gaps = append(r.readings.Gaps, Gap{What: "the volumes in Cinder", Why: err.Error()})
		return
	}
	f.CinderRead = true
	for _, v := range all {
		f.Cinder[strings.ToLower(v.ID)] = v
	}
}

func cinderList[T any](ctx context.Context, r *reader, resource, microversion string, id func(T) string) ([]T, error) {
	limit := pageOfCinder
	return paging.All(paging.MaxItems, func(marker string) ([]T, bool, error) {
		var page map[string]json.RawMessage
		read := func() error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if marker != "" {
				query.Set("marker", marker)
			}
			return r.send(ctx, "block-storage", microversion, resource+"/detail?"+query.Encode(), &page)
		}
		err := read()
		for ; errors.Is(err, cloud.ErrTooLarge) && limit > cloud.SmallestPage; err = read() {
			limit /= 4
		}
		if err != nil {
			return nil, false, err
		}
		var items cloud.Items[T]
		if err := cloud.Unmarshal(page[resource], &items); err != nil {
			return nil, false, fmt.Errorf("the list of %s is not what Cinder sends: %w", resource, err)
		}
		return items, page[resource+"_links"] != nil, nil
	}, id)
}

// pageOfCinder is the most that Cinder gives in one page by default (osapi_max_limit).
const pageOfCinder = 1000
