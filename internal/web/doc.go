// Package web serves the web pages: html/template over the service of package control. Every page
// works as plain forms. With scripts, one module follows a stream of server-rendered fragments: the
// stream compares what the page shows with what the store says and sends the difference, so that a
// reload, a second tab and a restart of the server show the same.
//
// Each stream of a page has two goroutines besides its request's, one that follows the session and
// one that watches all sessions. A stream that several pages of a browser share has one for each
// page. They end with the request.
package web
