// Package price knows the prices of model calls (spec 6.3, decision 29). It counts money in whole
// millionths of a US dollar, without fractions; an unknown price is unknown, never 0. It is pure:
// the prices are one data file (prices.json), each with its source and the day of reading.
package price

import (
	"math"
	"math/bits"
	"strings"

	"github.com/regie-run/regie"
)

// Million is how many tokens a rate is for, and how many millionths a dollar has.
const Million = 1_000_000

// Rates are millionths of a US dollar for a million tokens. Usage.Input is the whole prompt; what
// of it came from a vendor's cache, and what was written to it, have rates of their own.
type Rates struct {
	Input, CachedInput, CacheWrite, Output int64
}

// Price is what a model costs. The zero Price is that of a model that costs nothing.
type Price struct {
	Rates
	// UpTo is the largest prompt that Rates are for, in tokens; 0 bounds it not. A longer one is
	// charged by Beyond as a whole, where that is known; nil says that its price is not.
	UpTo   int64
	Beyond *Rates
}

// Free reports whether every call is free.
func (p Price) Free() bool { return p.Rates == Rates{} && p.UpTo == 0 }

// Cost is what a call costs, in millionths of a US dollar, rounded up; ok says that its price is
// known.
func (p Price) Cost(u regie.Usage) (cost int64, ok bool) {
	rates, ok := p.ratesOf(u.Input)
	if !ok {
		return 0, false
	}
	prompt := max(0, u.Input)
	cached := min(max(0, u.CacheRead), prompt)
	written := min(max(0, u.CacheCreation), prompt-cached)
	return sum(
		product{prompt - cached - written, rates.Input}, product{cached, rates.CachedInput},
		product{written, rates.CacheWrite},
		product{max(0, u.Output), rates.Output},
	), true
}

// Most returns the highest cost of a call within these numbers of tokens, of prompt and reply
// separately. The prompt counts at its highest rate, because a vendor may write all of it to its
// cache.
func (p Price) Most(prompt, reply int64) (forPrompt, forReply int64, ok bool) {
	rates, ok := p.ratesOf(prompt)
	if !ok {
		return 0, 0, false
	}
	return sum(product{prompt, max(rates.Input, rates.CachedInput, rates.CacheWrite)}),
		sum(product{reply, rates.Output}), true
}

// Reply is how many tokens of a reply an amount pays for, after a prompt of so many tokens; at most
// most.
func (p Price) Reply(amount, prompt, most int64) int64 {
	rates, ok := p.ratesOf(prompt)
	switch {
	case !ok || amount <= 0:
		return 0
	case rates.Output <= 0:
		return most
	}
	high, low := bits.Mul64(uint64(amount), Million)
	if high >= uint64(rates.Output) {
		return most
	}
	tokens, _ := bits.Div64(high, low, uint64(rates.Output))
	return int64(min(tokens, uint64(max(0, most))))
}

func (p Price) ratesOf(prompt int64) (Rates, bool) {
	switch {
	case p.UpTo == 0 || prompt <= p.UpTo:
		return p.Rates, true
	case p.Beyond != nil:
		return *p.Beyond, true
	default:
		return Rates{}, false
	}
}

type product struct{ tokens, rate int64 }

// sum adds products and rounds the whole up to millionths, once. What no number holds is the
// largest there is: no claim of a server makes a price small.
func sum(products ...product) int64 {
	var high, low uint64
	for _, p := range products {
		h, l := bits.Mul64(uint64(max(0, p.tokens)), uint64(max(0, p.rate)))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	low, carry := bits.Add64(low, Million-1, 0)
	if high += carry; high >= Million {
		return Largest
	}
	amount, _ := bits.Div64(high, low, Million)
	return int64(min(amount, Largest))
}

// Largest is the largest amount, in millionths of a US dollar: sums must not overflow.
const Largest = math.MaxInt64 >> 16

// Parse reads dollars as people write them, "0.075", into millionths. It returns CodeBadRequest for
// anything else, for what is negative, for more than six digits behind the point, which would be
// lost, and for a million dollars and more, which is a slip of the pen.
func Parse(text string) (int64, error) {
	whole, part, _ := strings.Cut(text, ".")
	digits := whole + part
	if whole == "" || strings.HasSuffix(text, ".") || len(whole) > 6 || len(part) > 6 ||
		strings.Trim(digits, "0123456789") != "" {
		return 0, regie.Errorf(regie.CodeBadRequest,
			"%q is not an amount in dollars: write it like 0.075, with at most six decimals", text)
	}
	var amount int64
	for _, digit := range whole + (part + "000000")[:6] {
		amount = amount*10 + int64(digit-'0')
	}
	return amount, nil
}
