// Loops, memory, recursion, a switch, garbage collected objects and floating
// point in AssemblyScript. Built by the tests: asc program.ts -O --outFile …

class Node {
  left: Node | null = null;
  right: Node | null = null;
  constructor(public key: i32) {}
}

function insert(node: Node | null, key: i32): Node {
  if (!node) return new Node(key);
  if (key < node.key) node.left = insert(node.left, key);
  else node.right = insert(node.right, key);
  return node;
}

function depth(node: Node | null): i32 {
  return node ? 1 + max(depth(node.left), depth(node.right)) : 0;
}

export function tree(n: i32): i64 {
  let root: Node | null = null;
  for (let i = 0, x: u32 = 1; i < n; i++) {
    x = x * 1664525 + 1013904223;
    root = insert(root, x >> 8);
  }
  return depth(root);
}

export function words(n: i32): i64 {
  const seen = new Map<string, i32>();
  for (let i = 0; i < n; i++) {
    const word = "w" + ((i * i) % 97).toString(16);
    seen.set(word, (seen.has(word) ? seen.get(word) : 0) + i);
  }
  const keys = seen.keys().sort();
  let sum: i64 = 0;
  for (let i = 0; i < keys.length; i++) sum = sum * 31 + seen.get(keys[i]);
  return sum;
}

export function interpret(n: i32): i64 {
  const code: StaticArray<u8> = [0, 2, 1, 3, 0, 4, 2, 5];
  let a: i64 = 1, b: i64 = 2;
  for (let i = 0; i < n; i++) {
    switch (code[i & 7]) {
      case 0: a += b; break;
      case 1: b ^= a << 1; break;
      case 2: a = (a * 33) % 1000003; break;
      case 3: b -= a; continue;
      case 4: if (a > b) i++; break;
      default: b = b / 3 + 7;
    }
    a ^= i;
  }
  return a * 65537 + b;
}

export function matrix(n: i32): i64 {
  const a = new Float64Array(n * n), b = new Float64Array(n * n);
  for (let i = 0; i < n * n; i++) a[i] = 1.0 / (i + 1), b[i] = Math.sqrt(i);
  let sum = 0.0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++)
      for (let k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
  return reinterpret<i64>(sum);
}

export function outside(n: i32): i64 {
  const a = new StaticArray<i32>(n);
  return a[n + 1]; // aborts
}
