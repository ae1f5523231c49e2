import type { signIn as en } from '../en/signIn';

export const signIn: typeof en = {
  title: 'Entrar',
  user: 'Usuário',
  password: 'Senha',
  submit: 'Entrar',
  provider: 'Continuar com a sua organização',
  or: 'ou',
  first: 'Primeiro início: tenho um código de uso único',
  code: 'Código de uso único',
  codeHelp: 'O servidor o mostrou no terminal. Ele faz de você administrador, uma vez, em até 15 minutos.',
  back: 'Entrar com um usuário',
  wrong: 'Usuário ou senha incorretos.',
  wrongHelp: 'Depois de muitas tentativas, o servidor faz você esperar.',
  wrongCode: 'O código está errado, já foi usado ou expirou.',
  wrongCodeHelp: 'Na máquina do armazenamento: redrive users add NOME --grant admin',
};
