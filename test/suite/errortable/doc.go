// Package errortable documents how every RPC answers every failure, as data that people review. Its tests cause each failure over HTTP:
// they run the whole driver in one process on a simulated cloud, in virtual time.
//
// testdata/table.txt has the code of each kind of error in each RPC, before and after a request that may have changed the cloud.
// testdata/statuses.txt has the answer of each RPC about objects in every status of Cinder.
package errortable
