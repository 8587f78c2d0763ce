#!/usr/bin/env node
import { enableCompileCache } from 'node:module';

// Compiled code is kept between calls: a command that people type many times a day must answer at once.
enableCompileCache();
const { runProgram } = await import('./run.ts');
await runProgram();
