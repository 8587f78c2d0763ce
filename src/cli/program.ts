import { basename } from 'node:path';
import type { Command } from 'commander';
import { VERSION } from '../kube/version.ts';
import { addAdoption } from './adopt/command.ts';
import { addApi } from './api/command.ts';
import { KubectlCommand } from './boolean-flags.ts';
import { addBootstrap } from './bootstrap/command.ts';
import { addCertificateVerbs } from './certificates/command.ts';
import { addCompletion } from './completion/command.ts';
import { addConsole } from './console/command.ts';
import { addMachineConfigDaemon } from './daemon/command.ts';
import { addDescribe } from './describe/command.ts';
import { addExplain } from './explain/command.ts';
import { addGet } from './get/command.ts';
import { addGraph } from './graph/command.ts';
import { addHandOverVerbs } from './hand-overs/command.ts';
import { addKubeadmAgent } from './kubeadm-agent/command.ts';
import { addKubeadmOperator } from './kubeadm-operator/command.ts';
import { addMonitor } from './monitor/command.ts';
import { addNodePrograms } from './node/command.ts';
import { addOperators } from './operator/command.ts';
import { addPlan } from './plan/command.ts';
import { addProve } from './prove/command.ts';
import { addRotate } from './rotate/command.ts';
import { addSimulate } from './simulate/command.ts';
import { addTwin } from './twin/command.ts';
import { addUp } from './up/command.ts';
import { addVerify } from './verify/command.ts';
import { addWait } from './wait/command.ts';

/** The whole command, nothing run yet. What a command needs is loaded when it runs. */
export function buildProgram(calledAs: string = process.argv[1] ?? ''): Command {
  // As a plugin it is `kubectl rotunda`, and its help says so (spec 70, 7).
  const name = basename(calledAs).startsWith('kubectl-') ? 'kubectl rotunda' : 'rotunda';
  const program = new KubectlCommand(name)
    .description(
      'Keeps every certificate of a Kubernetes control plane rotating by itself, and says beforehand what will happen.',
    )
    .version(VERSION)
    .showHelpAfterError(`(run ${name} --help for the commands)`)
    .exitOverride();
  addUp(program);
  addBootstrap(program);
  addGet(program);
  addDescribe(program);
  addGraph(program);
  addExplain(program);
  addPlan(program);
  addSimulate(program);
  addProve(program);
  addTwin(program);
  addVerify(program);
  addMonitor(program);
  addWait(program);
  addCertificateVerbs(program);
  addHandOverVerbs(program);
  addAdoption(program);
  addRotate(program);
  addCompletion(program);
  addConsole(program);
  addApi(program);
  addOperators(program);
  addKubeadmOperator(program);
  addMachineConfigDaemon(program);
  addKubeadmAgent(program);
  addNodePrograms(program);
  return program;
}
