package exchange
import ("testing";"math/rand/v2";"os";"strconv")
func TestZZ(t *testing.T){
 n,_:=strconv.Atoi(os.Getenv("ZZ"))
 for range n {
  x:=loopbackConfig{producers:1+rand.IntN(4),consumers:1+rand.IntN(4),records:100+rand.IntN(400),exclusive:rand.IntN(3),floating:1+rand.IntN(3),perSub:1+rand.IntN(4)}
  x.buffers=x.consumers+rand.IntN(6)
  cur=x
  loopback(t,x)
 }
}
var cur loopbackConfig
