// Package sdkcheck holds our codecs to the vendors' official Go SDKs, as independent readers of the
// same formats (decision 31): what we send is read into their types, and each stream is read by
// them and by us. It is a module of its own, so that nothing of them is in the product's. It starts
// no goroutine but those of the test servers.
package sdkcheck
