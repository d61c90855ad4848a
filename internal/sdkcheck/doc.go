// Package sdkcheck tests our codecs against the vendors' official Go SDKs, as independent readers
// of the same formats (decision 31). It reads our requests into their types, and each stream with
// both. Our mail is checked against a mail server that others wrote. It is a separate module, so that
// the product does not depend on them. It starts no goroutine but those of the test servers.
package sdkcheck
