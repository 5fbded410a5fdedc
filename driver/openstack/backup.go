package openstack

import (
	"context"
	"net/http"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

var (
	getBackup    = cloud.Call{Service: "block-storage", Method: http.MethodGet, Path: "/backups/{id}"}
	deleteBackup = cloud.Call{Service: "block-storage", Method: http.MethodDelete, Path: "/backups/{id}"}
)

const sourceBackup = contract.MetadataSourceBackup

// wireBackup is a backup as Cinder writes it (Cinder API reference, "Show backup detail").
type wireBackup struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Volume     string `json:"volume_id"`
	Status     string `json:"status"`
	Size       int    `json:"size"` // GiB
	CreatedAt  string `json:"created_at"`
	FailReason string `json:"fail_reason"`
}

// Backup implements volume.BackupCloud.
func (c *Cloud) Backup(ctx context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	var answer struct {
		Backup wireBackup `json:"backup"`
	}
	err := c.do(ctx, request{
		call: getBackup, verb: "read backup", object: "backup " + string(id), ids: []string{string(id)}, ok: http.StatusOK, into: &answer,
	})
	w := answer.Backup
	b := volume.Snapshot{
		ID: volume.SnapshotID(w.ID), Name: w.Name, Volume: volume.ID(w.Volume), Status: volume.Status(w.Status), Size: volume.GiB(w.Size),
		Backup: true, Reason: w.FailReason,
	}
	b.CreatedAt, _ = time.Parse("2006-01-02T15:04:05", w.CreatedAt) // as with volumes
	return b, err
}

// DeleteBackup implements volume.BackupCloud.
func (c *Cloud) DeleteBackup(ctx context.Context, id volume.SnapshotID) error {
	return c.do(ctx, request{
		call: deleteBackup, verb: "delete backup", object: "backup " + string(id), ids: []string{string(id)}, ok: http.StatusAccepted,
	})
}
