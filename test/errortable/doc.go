// Package errortable holds the documented answer of every RPC to every failure, as data that people review. Its tests cause each failure
// through HTTP. The whole driver runs in one process on a simulated cloud, in virtual time.
//
// testdata/table.txt has the code of each error kind in each RPC, before and after a request that may have changed the cloud.
// testdata/statuses.txt has the answer of each RPC about objects in every status of Cinder.
package errortable
